"""Kernels on groups of columns: arrays, data frames, transformers, text."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from mixnorm.kernels import (
    FunctionKernel,
    GaussianKernel,
    KernelBank,
    KernelStack,
    LaplacianKernel,
    LinearKernel,
)
from mixnorm.kernels.banks.inputs import locate, names_of

WORDS = ["red fish", "blue fish", "old house", "new house", "red house", "blue sky", "fish", "sky"]


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "size": rng.random(8),
            "weight": 10.0 * rng.random(8),
            "colour": list("rgbrgbrg"),
            "note": WORDS,
            "age": rng.integers(1, 90, size=8),
        }
    )


def gram(bank, X):
    return np.stack(bank.fit(X).grams().matrices)


def linear(rows):
    rows = np.asarray(rows, dtype=float)
    return rows @ rows.T


@pytest.mark.parametrize(
    ("columns", "places"),
    [
        (None, [0, 1, 2, 3, 4]),
        ([1, 3], [1, 3]),
        ((0, -1), [0, 4]),
        (np.array([2]), [2]),
        (slice(1, 4), [1, 2, 3]),
        (slice(None, None, 2), [0, 2, 4]),
        ([True, False, False, True, False], [0, 3]),
        (np.array([False, True, False, False, False]), [1]),
        (2, [2]),
        (range(2), [0, 1]),
        (pd.Index([0, 1]), [0, 1]),
    ],
)
def test_columns_of_arrays(X, new, columns, places):
    bank = KernelBank(["linear"], columns=[columns], normalize=None, dtype="float64")
    np.testing.assert_allclose(gram(bank, X)[0], linear(X[:, places]), atol=1e-12)
    fitted = bank.fit(X)
    np.testing.assert_allclose(
        fitted.combine(new, [1.0]), new[:, places] @ X[:, places].T, atol=1e-12
    )
    rows = sparse.csr_array(X)
    np.testing.assert_allclose(gram(bank, rows)[0], linear(X[:, places]), atol=1e-12)


def test_shared_groups(X):
    columns = [None, [0, 1], slice(0, 2), [0, 1, 2, 3, 4], [1]]
    fitted = KernelBank(["linear"] * 5, columns=columns).fit(X)
    assert fitted.group_of == [0, 1, 1, 0, 2]
    assert len(fitted.rows) == 3
    assert fitted.rows[2].shape == (60, 1)


def test_columns_of_frames(frame):
    columns = ["size", ["age", "size"], [1], frame.columns == "weight"]
    bank = KernelBank(["linear"] * 4, columns=columns, normalize=None, dtype="float64")
    K = gram(bank, frame)
    np.testing.assert_allclose(K[0], linear(frame[["size"]]))
    np.testing.assert_allclose(K[1], linear(frame[["age", "size"]]))
    np.testing.assert_allclose(K[2], linear(frame[["weight"]]))
    np.testing.assert_allclose(K[3], linear(frame[["weight"]]))
    assert bank.names[:3] == ["size: linear", "age, size: linear", "columns 1: linear"]


def test_polars(frame):
    bank = KernelBank(
        ["linear"] * 2, columns=["size", ["age", "weight"]], normalize=None, dtype="float64"
    )
    table = pl.from_pandas(frame)
    np.testing.assert_allclose(gram(bank, table), gram(bank, frame))
    fitted = bank.fit(table)
    expected = fitted.combine(table[:3], [1.0, 2.0])
    assert expected.shape == (3, 8)
    turned = table[:3].select(frame.columns[::-1].tolist())
    np.testing.assert_allclose(fitted.combine(turned, [1.0, 2.0]), expected)


def test_new_frames_go_by_name(frame):
    fitted = KernelBank(["linear"], columns=[["age", "size"]], normalize=None, dtype="float64").fit(
        frame
    )
    expected = linear(frame[["age", "size"]])
    turned = frame[frame.columns[::-1]].assign(extra=0.0)
    np.testing.assert_allclose(fitted.combine(turned, [1.0]), expected)
    np.testing.assert_allclose(fitted.combine(frame.to_numpy(), [1.0]), expected)
    with pytest.raises(ValueError, match="X has no column 'age', which the training rows had"):
        fitted.combine(frame.drop(columns="age"), [1.0])
    with pytest.raises(ValueError, match="X has 2 columns, but the training rows had 5"):
        fitted.combine(np.ones((2, 2)), [1.0])


BAD = [
    ([["height"]], ValueError, "entry 0 of columns chooses the unknown column 'height'; the col"),
    (["height"], ValueError, "unknown column 'height'"),
    ([[5]], ValueError, "chooses column 5, but there are 5; positions run from 0 to 4"),
    ([-6], ValueError, "chooses column -6"),
    ([[]], ValueError, "entry 0 of columns has no columns"),
    ([slice(3, 3)], ValueError, "has no columns"),
    ([[False] * 5], ValueError, "has no columns"),
    ([[True]], ValueError, "mask of length 1, but there are 5 columns"),
    ([["size", 3]], TypeError, "give either positions, or names"),
    ([[0.5]], TypeError, "give either positions, or names"),
    ([1.5], TypeError, "chooses columns by 1.5"),
    ([slice("size", "age")], TypeError, "slices go by position"),
    ([["note"]], ValueError, "X has values that are not real numbers"),
]


@pytest.mark.parametrize(("columns", "error", "message"), BAD)
def test_bad_columns(frame, columns, error, message):
    with pytest.raises(error, match=message):
        KernelBank(["linear"], columns=columns).fit(frame)


def test_names_are_texts(frame):
    assert names_of(frame) == list(frame.columns)
    assert names_of(frame.rename(columns={"age": 4})) is None
    assert names_of(frame.to_numpy()) is None


def test_names_need_a_frame(X):
    with pytest.raises(ValueError, match="by name, but X has no column names"):
        KernelBank(["linear"], columns=["size"]).fit(X)


# --- groups


def test_groups(X):
    groups = {"first": [0, 1], "rest": slice(2, None)}
    bank = KernelBank.from_columns(
        None, groups, ["linear", LaplacianKernel(2.0)], normalize=None, dtype="float64"
    )
    assert bank.names == [
        "first: linear",
        "first: laplacian(tau=2)",
        "rest: linear",
        "rest: laplacian(tau=2)",
    ]
    K = gram(bank, X)
    np.testing.assert_allclose(K[0], linear(X[:, :2]), atol=1e-12)
    np.testing.assert_allclose(K[3], LaplacianKernel(2.0).between(X[:, 2:]))
    own = {"first": ["linear"], "rest": GaussianKernel(0.5)}
    bank = KernelBank.from_columns(None, groups, own, normalize="trace")
    assert bank.names == ["first: linear", "rest: gaussian(tau=0.5)"]
    assert bank.normalize == "trace"
    default = KernelBank.from_columns(None, groups)
    assert default.names == [
        "first: gaussian(tau=1, relative)", "rest: gaussian(tau=1, relative)",
    ]  # fmt: skip
    fitted = default.fit(X)
    assert fitted.kernels[1].tau == pytest.approx(2.0 * X[:, 2:].var(axis=0).sum())
    assert clone(default).columns == groups


def test_constant_groups(X):
    X[:, 1] = 3.0
    bank = KernelBank.from_columns(None, {"constant": [1], "other": [0]})
    assert np.array_equal(gram(bank, X)[0], np.ones((60, 60)))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: KernelBank.from_columns(None, {}), ValueError, "no groups"),
        (lambda: KernelBank.from_columns(None, [[0]]), TypeError, "groups must be a dictionary"),
        (lambda: KernelBank.from_columns(None, {"a": []}), ValueError, "group 'a' has no columns"),
        (
            lambda: KernelBank.from_columns(None, {"a": [0]}, {"b": ["linear"]}),
            ValueError,
            "kernels has no kernels for group 'a'",
        ),
        (
            lambda: KernelBank.from_columns(None, {"a": [0]}, {"a": "linear", "b": "linear"}),
            ValueError,
            "kernels for the unknown group 'b'",
        ),
        (lambda: KernelBank.from_columns(None, {"a": [0]}, []), ValueError, "kernels is empty"),
        (
            lambda: KernelBank.from_columns({"b": None}, {"a": [0]}),
            ValueError,
            "a transformer for the unknown group 'b'",
        ),
        (
            lambda: KernelBank.from_columns({"a": StandardScaler}, {"a": [0]}),
            TypeError,
            "is not a transformer",
        ),
        (lambda: KernelBank.from_columns("scale", {"a": [0]}), TypeError, "is not a transformer"),
    ],
)
def test_bad_groups(make, error, message, X):
    with pytest.raises(error, match=message):
        make().fit(X)


def test_missing_values_are_named(frame):
    frame.loc[2, "weight"] = np.nan
    bank = KernelBank.from_columns(None, {"whole": ["size", "age"], "part": ["weight"]})
    with pytest.raises(ValueError, match="group 'part' has missing or infinite values"):
        bank.fit(frame)


# --- transformers


def test_one_transformer(X, new):
    scaler = StandardScaler()
    bank = KernelBank.from_columns(
        scaler, {"a": [0, 2], "b": [1]}, ["linear"], normalize=None, dtype="float64"
    )
    Z = StandardScaler().fit(X)
    fitted = bank.fit(X)
    np.testing.assert_allclose(fitted.grams().matrices[0], linear(Z.transform(X)[:, [0, 2]]))
    found = fitted.combine(new, [0.0, 1.0])
    np.testing.assert_allclose(found, Z.transform(new)[:, [1]] @ Z.transform(X)[:, [1]].T)
    assert not hasattr(scaler, "mean_")  # a copy was fitted


def test_a_column_transformer(frame):
    transformer = ColumnTransformer(
        [
            ("numbers", StandardScaler(), ["size", "weight", "age"]),
            ("colours", OneHotEncoder(sparse_output=False), ["colour"]),
        ]
    )
    groups = {
        "by input": ["size", "age"],
        "by transformer": "numbers",
        "one-hot": "colour",
        "exact": ["colours__colour_g"],
        "by position": [0],
    }
    bank = KernelBank.from_columns(transformer, groups, ["linear"], normalize=None, dtype="float64")
    K = gram(bank, frame)
    Z = transformer.fit_transform(frame)
    for matrix, places in zip(K, ([0, 2], [0, 1, 2], [3, 4, 5], [4], [0]), strict=True):
        np.testing.assert_allclose(matrix, linear(Z[:, places]), atol=1e-12)
    fitted = bank.fit(frame)
    found = fitted.combine(frame[:3], [0.0, 0.0, 1.0, 0.0, 0.0])
    np.testing.assert_allclose(found, Z[:3, 3:] @ Z[:, 3:].T)
    with pytest.raises(
        ValueError, match=r"group 'x' chooses the unknown column 'note'; the c.*num"
    ):
        KernelBank.from_columns(transformer, {"x": ["note"]}).fit(frame)


def test_pandas_outputs_and_pipelines(frame):
    frame.loc[1, "size"] = np.nan
    steps = make_pipeline(SimpleImputer(), StandardScaler())
    transformer = make_column_transformer(
        (steps, ["size", "weight"]), remainder="drop", verbose_feature_names_out=False
    ).set_output(transform="pandas")
    bank = KernelBank.from_columns(
        transformer, {"a": ["weight"]}, ["linear"], normalize=None, dtype="float64"
    )
    Z = np.asarray(clone(steps).fit_transform(frame[["size", "weight"]]))
    np.testing.assert_allclose(gram(bank, frame)[0], linear(Z[:, [1]]), atol=1e-12)
    assert bank.fit(frame).combine(frame[:2], [1.0]).shape == (2, 8)


def test_outputs_without_names(X):
    doubled = FunctionTransformer(lambda X: 2.0 * X)
    bank = KernelBank.from_columns(doubled, {"a": [1]}, ["linear"], normalize=None, dtype="float64")
    np.testing.assert_allclose(gram(bank, X)[0], 4.0 * linear(X[:, [1]]))
    with pytest.raises(ValueError, match="the preprocess transformer names no outputs"):
        KernelBank.from_columns(doubled, {"a": ["x1"]}).fit(X)


def test_transformers_may_use_the_target(X):
    y = X[:, 3]
    select = SelectKBest(lambda X, y: -((X - y[:, None]) ** 2).sum(axis=0), k=1)
    bank = KernelBank(["linear"], preprocess=select, normalize=None, dtype="float64")
    np.testing.assert_allclose(bank.fit(X, y).grams().matrices[0], linear(X[:, [3]]))


def test_transformers_by_group(frame):
    groups = {"text": "note", "numbers": ["size", "weight"], "colour": ["colour"], "age": "age"}
    vectorizer = TfidfVectorizer()
    preprocess = {
        "text": vectorizer,
        "numbers": StandardScaler(),
        "colour": OneHotEncoder(),
        "age": None,
    }
    bank = KernelBank.from_columns(preprocess, groups, ["linear"], normalize=None, dtype="float64")
    fitted = bank.fit(frame)
    K = np.stack(fitted.grams().matrices)
    texts = TfidfVectorizer().fit_transform(WORDS)
    np.testing.assert_allclose(K[0], (texts @ texts.T).toarray(), atol=1e-12)
    numbers = StandardScaler().fit_transform(frame[["size", "weight"]])
    np.testing.assert_allclose(K[1], linear(numbers), atol=1e-12)
    same = frame["colour"].to_numpy()[:, None] == frame["colour"].to_numpy()
    np.testing.assert_allclose(K[2], same)
    np.testing.assert_allclose(K[3], linear(frame[["age"]]))
    assert isinstance(fitted.rows[0], tuple)  # stays sparse
    found = fitted.combine(frame[:3], [1.0, 1.0, 1.0, 1.0])
    np.testing.assert_allclose(found, K.sum(axis=0)[:3], atol=1e-9)
    assert not hasattr(vectorizer, "vocabulary_")
    only_text = frame.assign(size=np.nan)
    np.testing.assert_allclose(fitted.combine(only_text, [1.0, 0, 0, 0]), K[0], atol=1e-12)
    relative = KernelBank.from_columns(preprocess, groups).fit(frame).grams()
    assert isinstance(relative, KernelStack)
    relative.check()


def test_groups_of_several_columns_without_a_transformer(frame):
    groups = {"numbers": ["size", "weight"], "age": "age"}
    preprocess = {"age": FunctionTransformer()}
    bank = KernelBank.from_columns(preprocess, groups, ["linear"], normalize=None, dtype="float64")
    K = np.stack(bank.fit(frame).grams().matrices)
    np.testing.assert_allclose(K[0], linear(frame[["size", "weight"]]))
    np.testing.assert_allclose(K[1], linear(frame[["age"]]))


def test_text_in_an_array():
    X = np.array([WORDS, ["x"] * 8], dtype=object).T
    bank = KernelBank.from_columns({"text": TfidfVectorizer()}, {"text": 0}, ["linear"])
    texts = TfidfVectorizer().fit_transform(WORDS)
    np.testing.assert_allclose(gram(bank, X)[0], (texts @ texts.T).toarray(), atol=1e-6)


class Unstable(TransformerMixin, BaseEstimator):
    """Makes another number of columns later; and knows no ``fit_transform`` with a target."""

    def fit(self, X, y=None):
        self.seen_ = 0
        return self

    def transform(self, X):
        self.seen_ += 1
        return X[:, : self.seen_]


def test_transformers_that_change_their_mind(X):
    bank = KernelBank(["linear"], preprocess=Unstable()).fit(X)
    with pytest.raises(ValueError, match="makes 2 columns of these rows, but made 1 of the train"):
        bank.combine(X, [1.0])


class Bare:
    """A transformer with nothing but ``fit`` and ``transform``."""

    def get_params(self, deep=True):
        return {}

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X + 1.0


def test_bare_transformers(X):
    bank = KernelBank(["linear"], preprocess=Bare(), normalize=None, dtype="float64")
    np.testing.assert_allclose(gram(bank, X)[0], linear(X + 1.0), atol=1e-12)


def shared_letters(X, Y):
    """A kernel of texts: how many letters of the alphabet both have."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    left = np.array([[letter in row[0] for letter in letters] for row in X], dtype=float)
    right = np.array([[letter in row[0] for letter in letters] for row in Y], dtype=float)
    return left @ right.T


def test_functions_of_text(frame):
    kernels = {"letters": FunctionKernel(shared_letters), "size": LinearKernel()}
    bank = KernelBank(kernels, columns=["note", "size"], normalize=None, dtype="float64")
    fitted = bank.fit(frame)
    assert fitted.rows[0].dtype == object
    expected = shared_letters(frame[["note"]].to_numpy(), frame[["note"]].to_numpy())
    np.testing.assert_allclose(fitted.grams().matrices[0], expected)
    np.testing.assert_allclose(fitted.combine(frame[:3], [1.0, 0.0]), expected[:3])


def test_locate_names_made_from_others():
    names = ["n__a", "n__a_b", "c__b_x", "c__b_y", "b_extra", "t__fish"]
    for spec, places in [
        ("a", [0, 1]),  # what ends in __a, and what begins so within its transformer
        ("n", [0, 1]),
        ("c", [2, 3]),
        ("b", [2, 3, 4]),
        ("n__a", [0]),
        ("t", [5]),
        (["t", "c"], [5, 2, 3]),
        (["c", "b"], [2, 3, 4]),
    ]:
        assert locate(spec, names, 6, "group", made=True).tolist() == places, spec
