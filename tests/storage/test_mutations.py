"""Files with random edits and a right checksum: refused, or a model that predicts."""

import copy
import random
import warnings

import numpy as np
import pytest

from mixnorm import ShareBoostClassifier, ShareBoostRegressorCV
from mixnorm.exceptions import ModelFileError
from mixnorm.losses import MarginSoftmax
from mixnorm.pools import Columns

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
    """Yield where every part of a document is."""
    parts = node.items() if isinstance(node, dict) else enumerate(node)
    for key, part in parts:
        yield (*here, key)
        if isinstance(part, (dict, list)):
            yield from places(part, (*here, key))


def at(document, place):
    for step in place:
        document = document[step]
    return document


def mutation(tools, document, rng):
    """Return an edit: something replaced, dropped, taken from elsewhere, renamed or multiplied."""
    everywhere = list(places(document))
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


@pytest.mark.parametrize("seed", range(10))
def test_mutations_are_refused_or_predict(tools, victims, seed):
    rng = random.Random(seed)
    read = 0
    for _ in range(250):
        document, raw = rng.choice(victims)
        for _ in range(rng.choice([1, 1, 1, 2, 5])):
            try:
                document = tools.edited(document, mutation(tools, document, rng))
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
            assert len(model.predict(np.ones((5, width)))) == 5
    assert 0 < read < 200  # both ends were met
