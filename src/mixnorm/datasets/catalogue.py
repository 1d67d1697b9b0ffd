"""What the stored data sets are called, and where twins of some can be had."""

from dataclasses import dataclass
from string import ascii_uppercase


@dataclass(frozen=True)
class Twin:
    """How to bring a data set of OpenML into the form of the stored one.

    Parameters
    ----------
    data_id : int
        Its number at OpenML, which never changes its content.
    shape : tuple of int
        Rows and feature columns expected; anything else is an error.
    labels : tuple of str
        The source's class labels; the position is the integer label.
    class_names : tuple of str
        Names of the classes where they say more than the labels.
    n_train : int or None
        The first so many rows are the training part. ``None``: no split.
    dtype : str
        Type of the features.
    image : tuple of int
        Shape of a row, for images.
    drop : tuple of str
        Columns that are not features.
    """

    data_id: int
    shape: tuple[int, int]
    labels: tuple[str, ...]
    class_names: tuple[str, ...] = ()
    n_train: int | None = None
    dtype: str = "float32"
    image: tuple[int, ...] = ()
    drop: tuple[str, ...] = ()


NAMES = (
    "chars74k_kaggle", "computer", "dna", "glass", "iris", "isolet", "letter", "mfeat", "mnist",
    "parkinsons", "pendigits", "reuters_r52", "sarcos_4449", "satimage", "school", "segment",
    "svmguide2", "usps", "vehicle", "vowel", "wine", "wpbc",
)  # fmt: skip

# Shipped with scikit-learn, so never fetched.
SCIKIT_LEARN = {"iris": "load_iris", "wine": "load_wine"}

_DIGITS = tuple("0123456789")

OPENML = {
    "dna": Twin(
        data_id=40670,
        shape=(3186, 180),
        labels=("1", "2", "3"),
        class_names=("ei", "ie", "n"),
        n_train=2000,
        dtype="uint8",
    ),
    "glass": Twin(
        data_id=41,
        shape=(214, 9),
        labels=(
            "build wind float",
            "build wind non-float",
            "vehic wind float",
            "containers",
            "tableware",
            "headlamps",
        ),
        class_names=("1", "2", "3", "5", "6", "7"),
    ),
    "isolet": Twin(
        data_id=300,
        shape=(7797, 617),
        labels=tuple(str(i) for i in range(1, 27)),
        class_names=tuple(ascii_uppercase),
        n_train=6238,
    ),
    "letter": Twin(
        data_id=6,
        shape=(20000, 16),
        labels=tuple(ascii_uppercase),
        class_names=tuple(ascii_uppercase),
        n_train=16000,
        dtype="uint8",
    ),
    "mnist": Twin(
        data_id=554,
        shape=(70000, 784),
        labels=_DIGITS,
        n_train=60000,
        dtype="uint8",
        image=(28, 28),
    ),
    "pendigits": Twin(data_id=32, shape=(10992, 16), labels=_DIGITS, n_train=7494, dtype="uint8"),
    # OpenML's copy lacks five of the 6435 rows.
    "satimage": Twin(
        data_id=182,
        shape=(6430, 36),
        labels=("1", "2", "3", "4", "5", "7"),
        class_names=(
            "red soil",
            "cotton crop",
            "grey soil",
            "damp grey soil",
            "vegetation stubble",
            "very damp grey soil",
        ),
        n_train=4435,
        dtype="uint8",
    ),
    "segment": Twin(
        data_id=36,
        shape=(2310, 19),
        labels=("brickface", "sky", "foliage", "cement", "window", "path", "grass"),
        class_names=("brickface", "sky", "foliage", "cement", "window", "path", "grass"),
    ),
    "vehicle": Twin(
        data_id=54,
        shape=(846, 18),
        labels=("opel", "saab", "bus", "van"),
        class_names=("opel", "saab", "bus", "van"),
    ),
    "vowel": Twin(
        data_id=307,
        shape=(990, 10),
        labels=("hid", "hId", "hEd", "hAd", "hYd", "had", "hOd", "hod", "hUd", "hud", "hed"),
        class_names=("hid", "hId", "hEd", "hAd", "hYd", "had", "hOd", "hod", "hUd", "hud", "hed"),
        n_train=528,
        drop=("Train_or_Test", "Speaker_Number", "Sex"),
    ),
}
