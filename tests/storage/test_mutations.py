"""Files with random edits and a right checksum: refused, or a model that predicts."""

import copy
import random
import warnings

import numpy as np
import pytest

from mixnorm import (
    GreedyMKLClassifier,
    JointBoostClassifier,
    LinearMulticlassSVC,
    MixedNormRegressorCV,
    MKLClassifier,
    MKLRegressorCV,
    MultiTaskLearner,
    OneVsRestGreedy,
    ShareBoostClassifier,
    ShareBoostRegressorCV,
    UFOMKLClassifier,
)
from mixnorm.exceptions import ModelFileError, TableError
from mixnorm.kernels import gaussian_bank
from mixnorm.losses import MarginSoftmax
from mixnorm.pools import Columns, Stumps

HOSTILE = [
    None, True, 0, -1, 1, 2**31, 2**63, 10**30, 0.5, -0.0, 1e308, "", "x", "margin", "<f8",
    "\ud800", [], [1], [[]], {}, {"tuple": []}, {"dict": []}, {"array": 0}, {"array": 3},
    {"float": "nan"}, {"float": "inf"}, {"int": "0xffffffffffffffffffffffff"}, {"str": [55296]},
    {"objects": {"shape": [0], "items": []}}, {"objects": {"shape": [], "items": [None]}},
    {"scalar": {"dtype": "<f8", "bytes": "000000000000f07f"}},
    {"scalar": {"dtype": "<U1", "bytes": "41000000"}},
    {"dataclass": {"class": "losses.Squared", "fields": {}}},
    {"dataclass": {"class": "losses.MultinomialLogistic", "fields": {}}},
    {"dataclass": {"class": "pools.Columns", "fields": {"groups": None}}},
    {"estimator": {"class": "ShareBoostRegressor", "params": {}, "state": None}},
    {"splitter": {"class": "KFold", "params": {"n_splits": 3}}},
    {"splitter": {"class": "PredefinedSplit", "params": {"test_fold": [[1], [2, 3]]}}},
]  # fmt: skip


def places(node, here=()):
    """Return where every part of a document is."""
    found = []
    for key, part in node.items() if isinstance(node, dict) else enumerate(node):
        found.append((*here, key))
        if isinstance(part, (dict, list)):
            found += places(part, found[-1])
    return found


def at(document, place):
    for step in place:
        document = document[step]
    return document


def mutation(tools, document, rng):
    """Return an edit: something replaced, dropped, taken from elsewhere, renamed or multiplied."""
    everywhere = places(document)
    place = rng.choice(everywhere)
    value = at(document, place)
    kind = rng.randrange(6)
    if kind == 0:
        return place, tools.GONE
    if kind == 1:
        return place, copy.deepcopy(at(document, rng.choice(everywhere)))
    if kind == 2 and isinstance(value, (int, float)) and not isinstance(value, bool):
        return place, rng.choice([value + 1, -value, value * 1000, value - 1, value / 2])
    if kind == 3 and isinstance(value, list) and value:
        return place, [*value, copy.deepcopy(rng.choice(value))]
    if kind == 4 and isinstance(value, list):
        return place, value[::-1]
    return place, copy.deepcopy(rng.choice(HOSTILE))


@pytest.fixture(scope="module")
def victims(tools, digits):
    """Small models of several kinds, taken apart."""
    X, y = digits[0][:, 18:30], digits[1]
    pool = Columns(groups=[column // 2 for column in range(12)])
    models = [
        ShareBoostClassifier(2, loss=MarginSoftmax(0.5)).fit(X, np.array(["a", "b"])[y % 2]),
        ShareBoostClassifier(2, pool=pool).fit(X, y),
        ShareBoostRegressorCV(2, cv=2, alpha=1).fit(X, X[:, :2] ** 2),
    ]
    return [tools.opened(tools.packed(model)) for model in models]


@pytest.fixture(scope="module")
def kernel_victims(tools, digits):
    """Small models with kernels, taken apart."""
    X, y = digits[0][:40, 18:24] / 16.0, digits[1][:40] % 3
    bank = gaussian_bank([0.5, 2.0])
    models = [
        MKLClassifier(bank).fit(X, y),
        MKLClassifier(gaussian_bank([0.5, 2.0], factors="nystrom", rank=5)).fit(X, y),
        MKLRegressorCV(bank, Cs=[1.0], ps=[1.2], cv=2).fit(X, X[:, :2] ** 2),
        UFOMKLClassifier(bank).partial_fit(X, y),
        GreedyMKLClassifier(n_kernels=2, loss="logistic", max_iter=20).fit(X, y),
    ]
    return [tools.opened(tools.packed(model)) for model in models]


@pytest.fixture(scope="module")
def linear_victims(tools, digits):
    """Small models of the other families that leave frozen models, taken apart."""
    X, y = digits[0][:120, 18:30] / 16.0, digits[1][:120] % 3
    tasks = np.column_stack([y > 0, y > 1])
    models = [
        OneVsRestGreedy(2).fit(X, y),
        JointBoostClassifier(3).fit(X, y),
        ShareBoostClassifier(2, pool=Stumps(max_bins=4)).fit(X, y),
        MixedNormRegressorCV("l2,1", alphas=[0.1, 0.01], cv=2).fit(X, X[:, :2] ** 2),
        MultiTaskLearner("l2,1", "logistic", alpha=0.01).fit(X, tasks),
        LinearMulticlassSVC().fit(X, y),
    ]
    return [tools.opened(tools.packed(model)) for model in models]


@pytest.mark.parametrize("seed", range(10))
def test_mutations_are_refused_or_predict(tools, victims, seed):
    assert 0 < count_of_read(tools, victims, seed) < 200  # both ends were met


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(10))
def test_mutations_of_kernels(tools, kernel_victims, seed):
    assert 0 < count_of_read(tools, kernel_victims, seed) < 200


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(10))
def test_mutations_of_other_families(tools, linear_victims, seed):
    assert 0 < count_of_read(tools, linear_victims, seed) < 200


def edit(tools, document, place, value):
    """Return the document with an edit, copying only what leads there; it is not to be changed."""
    *way, last = place
    document = part = copy.copy(document)
    for step in way:
        part[step] = part = copy.copy(part[step])
    if value == tools.GONE:
        del part[last]
    else:
        part[last] = value
    return document


def count_of_read(tools, victims, seed):
    """Return how many of 250 altered files are read; these must predict."""
    rng = random.Random(seed)
    read = 0
    for _ in range(250):
        document, raw = rng.choice(victims)
        for _ in range(rng.choice([1, 1, 1, 2, 5])):
            try:
                document = edit(tools, document, *mutation(tools, document, rng))
            except (LookupError, TypeError):  # a part went into itself, or all is gone
                continue
        if rng.random() < 0.05:
            raw = raw[rng.randrange(len(raw)) :]
        try:
            model = tools.read(tools.forged(document, raw))
        except ModelFileError:
            continue
        read += 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scores that overflow
            width = getattr(model, "n_features_in_", 12)
            bank = getattr(model, "bank_", None)
            if hasattr(model, "bank_") and (bank is None or bank.preprocess is not None):
                continue  # of matrices, or of rows that steps of another library change
            assert len(model.predict(np.ones((5, width)))) == 5
    return read


@pytest.fixture(scope="module")
def table():
    pd = pytest.importorskip("pandas", reason="tables are data frames")
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 60, 80).astype(float),
            "fuel": rng.choice(["gas", "oil", None], 80),
            "year": rng.integers(1990, 2000, 80),
            "sold": pd.date_range("2020-01-01", periods=80, freq="9D").strftime("%d.%m.%Y"),
        }
    )


@pytest.fixture(scope="module")
def table_victims(tools, table):
    """Models of tables, with every kind of column, taken apart."""
    from mixnorm.tables import TableEncoder, TableModel

    encoder = TableEncoder.plan(table)
    X, pool = encoder.encode(table)[0], Columns(groups=encoder.groups)
    y = np.where(table["age"] > 40, "old", "young")
    classifier = ShareBoostClassifier(3, pool=pool).fit(X, y)
    regressor = ShareBoostRegressorCV(3, cv=2, pool=pool).fit(X, X[:, 0] + X[:, 1])
    models = [
        TableModel("y", "classification", encoder, classifier, {"rows": 80}),
        TableModel("y", "regression", encoder, regressor),
    ]
    return [tools.opened(tools.packed(model)) for model in models]


def predicts(model, table):
    """Tell whether a model predicts for all rows; None if it wants columns of other names."""
    width = getattr(model, "n_features_in_", None)
    try:
        return len(model.predict(table if width is None else np.ones((80, width)))) == 80
    except TableError as error:
        return None if "lacks the column" in str(error) else False


@pytest.mark.parametrize("seed", range(6))
def test_mutated_models_of_tables_are_refused_or_predict(tools, table, table_victims, seed):
    rng = random.Random(seed)
    found = {True: 0, None: 0, False: 0}
    for _ in range(250):
        document, raw = rng.choice(table_victims)
        try:
            document = edit(tools, document, *mutation(tools, document, rng))
        except (LookupError, TypeError):  # a part went into itself, or all is gone
            continue
        try:
            model = tools.read(tools.forged(document, raw))
        except ModelFileError:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scores that overflow
            found[predicts(model, table)] += 1
    assert found[False] == 0
    assert 0 < found[True] < 200  # both ends were met
