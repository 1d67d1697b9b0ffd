"""The names of the stored data sets, and the copies of some of them at OpenML."""

from dataclasses import dataclass
from string import ascii_uppercase

DIGITS = tuple("0123456789")


@dataclass(frozen=True)
class OpenMLCopy:
    """A data set of OpenML, and how to bring it into the form of the stored one.

    Parameters
    ----------
    data_id : int
        Its number at OpenML, whose content never changes.
    shape : tuple of int
        The expected numbers of rows and features; any other shape is an error.
    labels : tuple of str
        The class labels at OpenML; the position of a label is its integer.
    class_names : tuple of str
        The names of the classes; by default the labels, unless these are digits.
    n_train : int or None
        The number of rows of the training part, which come first, or ``None`` without a split.
    dtype : str
        Type of the features.
    image : tuple of int
        Shape of a row, for images.
    drop : tuple of str
        The columns that are not features.
    """

    data_id: int
    shape: tuple[int, int]
    labels: tuple[str, ...]
    class_names: tuple[str, ...] = ()
    n_train: int | None = None
    dtype: str = "float32"
    image: tuple[int, ...] = ()
    drop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.class_names and self.labels != DIGITS:
            object.__setattr__(self, "class_names", self.labels)


NAMES = (
    "chars74k_kaggle", "computer", "dna", "glass", "iris", "isolet", "letter", "mfeat", "mnist",
    "parkinsons", "pendigits", "reuters_r52", "sarcos_4449", "satimage", "school", "segment",
    "svmguide2", "usps", "vehicle", "vowel", "wine", "wpbc",
)  # fmt: skip

# Sets that scikit-learn contains, so they are never fetched.
SCIKIT_LEARN = {"iris": "load_iris", "wine": "load_wine"}

OPENML = {
    "dna": OpenMLCopy(
        data_id=40670,
        shape=(3186, 180),
        labels=("1", "2", "3"),
        class_names=("ei", "ie", "n"),
        n_train=2000,
        dtype="uint8",
    ),
    "glass": OpenMLCopy(
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
    "isolet": OpenMLCopy(
        data_id=300,
        shape=(7797, 617),
        labels=tuple(str(i) for i in range(1, 27)),
        class_names=tuple(ascii_uppercase),
        n_train=6238,
    ),
    "letter": OpenMLCopy(
        data_id=6,
        shape=(20000, 16),
        labels=tuple(ascii_uppercase),
        n_train=16000,
        dtype="uint8",
    ),
    "mnist": OpenMLCopy(
        data_id=554,
        shape=(70000, 784),
        labels=DIGITS,
        n_train=60000,
        dtype="uint8",
        image=(28, 28),
    ),
    "pendigits": OpenMLCopy(
        data_id=32, shape=(10992, 16), labels=DIGITS, n_train=7494, dtype="uint8"
    ),
    # OpenML's copy lacks five of the 6435 rows.
    "satimage": OpenMLCopy(
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
    "segment": OpenMLCopy(
        data_id=36,
        shape=(2310, 19),
        labels=("brickface", "sky", "foliage", "cement", "window", "path", "grass"),
    ),
    "vehicle": OpenMLCopy(
        data_id=54,
        shape=(846, 18),
        labels=("opel", "saab", "bus", "van"),
    ),
    "vowel": OpenMLCopy(
        data_id=307,
        shape=(990, 10),
        labels=("hid", "hId", "hEd", "hAd", "hYd", "had", "hOd", "hod", "hUd", "hud", "hed"),
        n_train=528,
        drop=("Train_or_Test", "Speaker_Number", "Sex"),
    ),
}
