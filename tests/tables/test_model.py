"""Models that read tables: what they predict, need and say."""

import dataclasses
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from mixnorm import ShareBoostClassifier, ShareBoostRegressor
from mixnorm.exceptions import TableError
from mixnorm.pools import Columns, Pieces, Products, Stumps, Union
from mixnorm.tables import SparseEncoder, SparseTable, Table, TableEncoder, TableModel
from mixnorm.tables import model as _model

pd = pytest.importorskip("pandas")

ROWS = 150


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    power = rng.integers(50, 250, ROWS)
    fuel = rng.choice(["gas", "oil", "sun"], ROWS)
    return pd.DataFrame(
        {
            "noise": rng.integers(0, 50, ROWS),
            "power": power,
            "fuel": fuel,
            "same": 1,
            "class": np.where((power > 150) ^ (fuel == "sun"), "fast", "slow"),
            "price": 100.0 * power + 5000 * (fuel == "sun") + rng.normal(size=ROWS),
        },
        index=rng.permutation(ROWS) + 7,
    )


def fitted(frame, target, estimator, n_features=2):
    encoder = TableEncoder.plan(frame.drop(columns=["class", "price"]))
    model = estimator(n_features, pool=Columns(groups=encoder.groups))
    matrix, _ = encoder.encode(frame)
    task = "classification" if target == "class" else "regression"
    return TableModel(target, task, encoder, model.fit(matrix, frame[target].to_numpy()))


@pytest.fixture(scope="module")
def classifier(frame):
    return fitted(frame, "class", ShareBoostClassifier)


@pytest.fixture(scope="module")
def regressor(frame):
    return fitted(frame, "price", ShareBoostRegressor)


@pytest.fixture(params=["classifier", "regressor"])
def model(request):
    return request.getfixturevalue(request.param)


def test_what_a_model_is(classifier, regressor):
    assert classifier.classes.tolist() == ["fast", "slow"]
    assert regressor.classes is None
    for model in (classifier, regressor):
        assert sorted(model.needed) == ["fuel", "power"]
        assert [model.encoder.names[index] for index in model.features] == model.needed
        smaller = model.truncate(1)
        assert smaller.needed == model.needed[:1]
        assert sorted(model.needed) == ["fuel", "power"]  # as it was


def test_predictions_are_those_of_the_estimator(frame, classifier, regressor):
    matrix, _ = classifier.encoder.encode(frame)
    found = classifier.apply(frame)
    assert found.notes == ["Ignored columns that training did not have: price."]
    np.testing.assert_array_equal(found.values, classifier.estimator.predict(matrix))
    chances = classifier.estimator.predict_proba(matrix)
    # The columns that are not needed are zero here; the sums may round otherwise.
    np.testing.assert_allclose(found.probabilities, chances, rtol=1e-5, atol=1e-7)
    found = regressor.apply(frame)
    assert found.probabilities is None
    np.testing.assert_allclose(found.values, regressor.estimator.predict(matrix), rtol=1e-6)
    np.testing.assert_array_equal(regressor.predict(frame), found.values)
    assert np.corrcoef(found.values, frame["price"])[0, 1] > 0.99


def test_order_of_columns_and_rows(frame, model):
    found = model.predict(frame)
    np.testing.assert_array_equal(model.predict(frame[frame.columns[::-1]]), found)
    np.testing.assert_array_equal(model.predict(frame.iloc[::-1])[::-1], found)
    np.testing.assert_array_equal(model.predict(Table("cars", frame)), found)


def test_columns_that_training_did_not_have_are_ignored(frame, model):
    more = frame.assign(colour="red", x2=3)
    other = {"class": "price", "price": "class"}[model.target]
    assert model.apply(more).notes == [
        f"Ignored columns that training did not have: {other}, colour, x2."
    ]
    np.testing.assert_array_equal(model.predict(more), model.predict(frame))


def test_only_columns_that_are_needed_have_to_be_there(frame, model):
    found = model.apply(frame[["fuel", "power"]])
    assert found.notes == []
    np.testing.assert_array_equal(found.values, model.predict(frame))
    with pytest.raises(TableError, match=r"lacks the column 'power' \(is it 'pwer'\?\)"):
        model.predict(frame.rename(columns={"power": "pwer"}))
    with pytest.raises(TableError, match="lacks the columns '(fuel|power)', '(fuel|power)'"):
        model.predict(frame[["noise"]])
    with pytest.raises(TableError, match="lacks the column 'fuel'"):
        model.predict(frame[["power"]].head(0))


@pytest.mark.parametrize("entries", [1, 35, 10_000])
def test_blocks_of_rows(frame, model, monkeypatch, entries):
    whole = model.apply(frame.assign(power=frame["power"].where(frame["power"] < 240)))
    monkeypatch.setattr(_model, "_ENTRIES_PER_BLOCK", entries)
    found = model.apply(frame.assign(power=frame["power"].where(frame["power"] < 240)))
    assert found.notes == whole.notes
    assert any("power is missing in" in note for note in found.notes)
    # Sums of one row and of many may round differently.
    if model.classes is None:
        np.testing.assert_allclose(found.values, whole.values, rtol=1e-6)
    else:
        np.testing.assert_array_equal(found.values, whole.values)
        np.testing.assert_allclose(found.probabilities, whole.probabilities, atol=1e-6)


def test_no_rows_and_one_row(frame, classifier, regressor):
    none = classifier.apply(frame.head(0))
    assert none.values.shape == (0,)
    assert none.values.dtype == classifier.classes.dtype
    assert none.probabilities.shape == (0, 2)
    assert regressor.predict(frame.head(0)).shape == (0,)
    assert regressor.apply(frame.head(0)).probabilities is None
    assert classifier.predict(frame.iloc[[3]]) == classifier.predict(frame)[3]


def test_gaps_are_filled_and_said(frame, model):
    median = float(np.median(frame["power"]))
    rows = frame.head(5).assign(power=[None, "x", np.inf, 100, 1e305], colour=1)
    found = model.apply(rows)
    like = frame.head(5).assign(power=[median, median, median, 100, median])
    np.testing.assert_array_equal(found.values, model.predict(like))
    assert "power is missing in 1 of 5 rows; filled in." in found.notes
    assert "Taken as missing in power: 2 infinite and 1 unreadable ('x')." in found.notes
    assert any(note.startswith("Ignored columns") and "colour" in note for note in found.notes)


def test_new_levels_are_said(frame, model):
    rows = frame.head(4).assign(fuel=["coal", None, "gas", "wood"])
    found = model.apply(rows)
    assert "fuel is missing in 1 of 4 rows; taken as none of its levels." in found.notes
    assert "fuel has levels that training did not have: 'coal', 'wood' (2 rows)." in found.notes
    assert len(found.values) == 4


def test_one_row_is_no_rows(frame, model):
    found = model.apply(frame.head(1).assign(fuel="coal"))
    assert "fuel has levels that training did not have: 'coal' (1 row)." in found.notes
    found = model.apply(frame.head(1).assign(power=None))
    assert "power is missing in 1 of 1 row; filled in." in found.notes


def test_gaps_in_columns_that_do_not_matter_are_not_said(frame, model):
    found = model.apply(frame[["fuel", "power"]].assign(noise=None, same=2))
    assert found.notes == []
    np.testing.assert_array_equal(found.values, model.predict(frame))


@pytest.mark.parametrize(
    ("fuel", "power"),
    [
        ("category", "Int64"),
        ("string", "float32"),
        ("object", "object"),
        ("string[pyarrow]", "int64[pyarrow]"),
        ("category", "string"),
    ],
)
def test_types_of_columns_do_not_matter(frame, model, fuel, power):
    if "pyarrow" in fuel:
        pytest.importorskip("pyarrow")
    found = model.apply(frame[["fuel", "power"]].astype({"fuel": fuel, "power": power}))
    assert found.notes == []
    np.testing.assert_array_equal(found.values, model.predict(frame))


@pytest.mark.parametrize("offset", [0, 0.5])
@pytest.mark.parametrize("target", ["class", "price"])
def test_enormous_numbers_still_give_predictions(frame, target, offset):
    estimator = ShareBoostClassifier if target == "class" else ShareBoostRegressor
    model = fitted(frame.assign(power=frame["power"] + offset), target, estimator)
    assert model.encoder.dtype == ("float64" if offset else "float32")
    found = model.apply(frame.head(4).assign(power=[1e35, -1e35, 1e300, 1e308]))
    assert "Taken as missing in power: 1 infinite." in found.notes
    for values in (found.values, found.probabilities):
        assert values is None or values.dtype.kind in "UO" or np.isfinite(values).all()


@pytest.mark.parametrize("table", [{"power": [1]}, np.zeros((2, 2)), [[1, 2]], "cars.csv"])
def test_what_is_no_table(model, table):
    with pytest.raises(TypeError, match=f"Give a DataFrame.*got {type(table).__name__}"):
        model.predict(table)


def test_pickled(frame, model):
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    assert again.encoder == model.encoder


# -- pools beyond columns ----------------------------------------------------------------------


def pooled(frame, target, pool, n_features=3, **options):
    encoder = TableEncoder.plan(frame.drop(columns=["class", "price"]), **options)
    kind = ShareBoostClassifier if target == "class" else ShareBoostRegressor
    matrix, _ = encoder.encode(frame)
    estimator = kind(n_features, pool=pool, random_state=0).fit(matrix, frame[target].to_numpy())
    task = "classification" if target == "class" else "regression"
    return TableModel(target, task, encoder, estimator)


POOLS = {
    "stumps": Stumps(),
    "products": Products(),
    "pieces": Pieces(20, 7),
    "union": Union([Columns(), Stumps()]),
}


@pytest.mark.parametrize("target", ["class", "price"])
@pytest.mark.parametrize("pool", POOLS)
def test_pools_read_the_columns_that_they_need(frame, target, pool):
    model = pooled(frame, target, POOLS[pool], standardise=pool == "pieces")
    model._check_stored()
    read = model.needed
    said = " ".join(model.describe(step.atom) for step in model.estimator.model_.path.rounds)
    all_ = ["noise", "power", "fuel"]
    assert read == (all_ if pool == "pieces" else sorted(read, key=said.index))
    assert set(read) == {name for name in all_ if name in said}
    assert pool in ("pieces", "union") or {"power", "fuel"} <= set(read)
    assert model.size == 3
    assert model.truncate(1).size == 1
    whole = model.estimator.predict(model.encoder.encode(frame)[0])
    found = model.predict(frame[read])
    if target == "class":
        np.testing.assert_array_equal(found, whole)
    else:
        np.testing.assert_allclose(found, whole, rtol=1e-5)
    with pytest.raises(TableError, match=f"lacks the column '{read[0]}'"):
        model.predict(frame.drop(columns=read[0]))


def test_features_in_words(frame):
    stumps = pooled(frame, "price", Stumps(), 30)
    names = {stumps.describe(step.atom) for step in stumps.estimator.model_.path.rounds}
    assert "fuel is not sun" in names
    assert any(name.startswith("power ≤ 1") for name in names)
    products = pooled(frame, "price", Products(), 2)
    assert [products.describe(step.atom) for step in products.estimator.model_.path.rounds] == [
        "power",
        "fuel = sun",
    ]
    assert products.describe((1, 1)) == "power²"
    assert products.describe((1, 2)).startswith("power × (fuel = ")
    pieces = pooled(frame, "price", Pieces(20, 7), 1, standardise=True)
    said = pieces.describe(pieces.estimator.model_.path.rounds[0].atom)
    assert said.startswith("within ")
    power = float(said.split("power ")[1].split(",")[0])
    assert 50 <= power <= 250
    assert "fuel" in said
    columns = fitted(frame, "price", ShareBoostRegressor)
    assert columns.describe(2) == "fuel"


@pytest.mark.parametrize("pool", ["stumps", "products"])
def test_numbers_that_training_did_not_have(frame, pool):
    model = pooled(frame, "price", POOLS[pool])
    found = model.predict(frame.head(3).assign(power=[1e35, -1e300, 1e308]))
    assert np.isfinite(found).all()


# -- sparse tables -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sparse():
    rng = np.random.default_rng(1)
    matrix = rng.integers(0, 4, (60, 5)).astype(float)
    labels = (matrix[:, 2] > 1).astype(int)
    table = SparseTable("t", sp.csr_array(matrix), labels, False)
    encoder = SparseEncoder.plan(table)
    estimator = ShareBoostClassifier(1).fit(encoder.encode(table)[0], labels)
    return TableModel("label", "classification", encoder, estimator), table


def test_sparse_tables(sparse):
    model, table = sparse
    assert model.needed == ["3"]
    found = model.apply(table)
    assert found.notes == []
    assert (found.values == table.labels).mean() > 0.9
    narrow = dataclasses.replace(table, matrix=table.matrix[:, :3])
    np.testing.assert_array_equal(model.predict(narrow), found.values)
    more = sp.csr_array(sp.hstack([table.matrix, np.ones((60, 2))]))
    wide = model.apply(dataclasses.replace(table, matrix=more))
    assert wide.notes == ["Ignored: 2 columns that training did not have."]
    np.testing.assert_array_equal(wide.values, found.values)
    none = model.apply(dataclasses.replace(table, matrix=table.matrix[:0]))
    assert none.values.shape == (0,)
    assert none.probabilities.shape == (0, 2)


def test_tables_of_the_wrong_kind(sparse, classifier, frame):
    model, table = sparse
    with pytest.raises(TableError, match="fitted on a LIBSVM file"):
        model.predict(frame)
    with pytest.raises(TableError, match="named columns .*(power|fuel).* not on a LIBSVM file"):
        classifier.predict(table)


@pytest.mark.parametrize("pool", [Stumps(), Products(), Pieces(10, 5)], ids=["s", "p", "b"])
def test_pools_over_sparse_tables(sparse, pool):
    _, table = sparse
    encoder = SparseEncoder.plan(table, standardise=isinstance(pool, Pieces))
    estimator = ShareBoostClassifier(2, pool=pool, random_state=0)
    estimator.fit(encoder.encode(table)[0], table.labels)
    model = TableModel("label", "classification", encoder, estimator)
    model._check_stored()
    assert "column " in model.describe(estimator.model_.path.rounds[0].atom)
    assert (model.predict(table) == table.labels).mean() > 0.8
    if isinstance(pool, Stumps):
        assert model.needed[0] == "3"
        assert model.describe(estimator.model_.path.rounds[0].atom) == "column 3 ≤ 1.5"
