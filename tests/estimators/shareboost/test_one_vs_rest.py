"""One class against the rest: the paths of all classes, and what they use together."""

import warnings
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import NotFittedError

import mixnorm
from mixnorm import GreedyOptions, OneVsRestGreedy, ShareBoostClassifier
from mixnorm.estimators.shareboost.one_vs_rest import _report
from mixnorm.exceptions import FewerFeaturesWarning, LightRowsWarning, ModelFileError
from mixnorm.losses import MarginSoftmax
from mixnorm.models import Inputs
from mixnorm.pools import Columns, Stumps
from mixnorm.pools.columns import PreparedColumns


@pytest.fixture(scope="module")
def model(digits):
    return OneVsRestGreedy(n_features_to_select=6).fit(*digits)


# --- the paths


@pytest.mark.filterwarnings("ignore::mixnorm.exceptions.FewerFeaturesWarning")  # of limits
@pytest.mark.parametrize(
    ("settings", "weighted"),
    [
        ({}, True),
        ({"options__swaps": 1, "loss": "logistic"}, False),
        ({"options__scale": False}, True),
        ({"options__penalty": "l1", "alpha": 1e-3}, False),
        ({"options__penalty": "linf,1", "alpha": 1e-3}, True),
        ({"options__backward": 2, "options__rule": "l1"}, False),
        ({"options__atoms_per_round": 3}, True),
        ({"max_inputs": 2}, False),
        ({"cost_budget": 70.0, "pool": Columns(costs=np.arange(64.0) + 1.0)}, True),
    ],
    ids=str,
)
def test_every_class_has_the_path_of_its_own_problem(digits, settings, weighted):
    X, y = (part[digits[1] < 4][:250] for part in digits)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, size=250) if weighted else None
    model = OneVsRestGreedy(4).set_params(**settings).fit(X, y, sample_weight=weight)
    assert len(model.estimators_) == 4
    for label, found in enumerate(model.estimators_):
        alone = ShareBoostClassifier(4).set_params(**settings)
        alone.fit(X, y == label, sample_weight=weight)
        assert type(found) is ShareBoostClassifier
        assert np.array_equal(found.selected_, alone.selected_)
        assert np.array_equal(found.coef_, alone.coef_)
        assert np.array_equal(found.predict(X), alone.predict(X))
        assert np.array_equal(model.coef_[label], alone.coef_[0])
        assert model.intercept_[label] == alone.intercept_[0]


@pytest.mark.filterwarnings("ignore::mixnorm.exceptions.FewerFeaturesWarning")  # of limits
@pytest.mark.parametrize(
    "settings",
    [
        {"options__penalty": "l1", "alpha": 0.01},
        {"options__backward": 3},
        {"options__atoms_per_round": 4},
        {"max_inputs": 2},
        {"options__rounds_per_input": 3, "pool": Stumps()},
        {"cost_budget": 40.0, "pool": Columns(costs=np.arange(64.0) + 1.0)},
    ],
    ids=str,
)
def test_every_setting_acts(digits, settings):
    """Each changes the model beside its default; the rest stays the same."""
    X, y = digits[0][:600], digits[1][:600] // 4
    others = {name: value for name, value in settings.items() if name in ("alpha", "pool")}
    plain = OneVsRestGreedy(5, options=GreedyOptions(rule="l1")).set_params(**others).fit(X, y)
    model = OneVsRestGreedy(5, options=GreedyOptions(rule="l1")).set_params(**settings).fit(X, y)
    assert not np.array_equal(model.decision_function(X), plain.decision_function(X))


def test_scores_are_those_of_the_classes(model, digits):
    X, _ = digits
    scores = model.decision_function(X)
    assert scores.shape == (len(X), 10)
    for label, found in enumerate(model.estimators_):
        assert scores[:, label] == pytest.approx(found.decision_function(X))
    assert scores == pytest.approx(X @ model.coef_.T + model.intercept_)
    assert np.array_equal(model.predict(X), model.classes_[scores.argmax(axis=1)])


def test_features_used_together(model):
    chosen = [found.path_["feature"] for found in model.estimators_]
    for size, used in enumerate(model.n_features_used_, start=1):
        assert used == len({feature for path in chosen for feature in path[:size]})
    assert len(model.selected_) == model.n_features_used_[-1] == model.get_support().sum()
    turns = [path[at] for at in range(6) for path in chosen]
    assert model.selected_.tolist() == list(dict.fromkeys(turns))


def test_more_features_than_with_sharing(digits):
    X, y = digits
    model = OneVsRestGreedy(5).fit(X, y)
    shared = ShareBoostClassifier(int(model.n_features_used_[-1])).fit(X, y)
    assert shared.score(X, y) > model.score(X, y)


def test_features_used_with_swaps_are_those_in_use(digits):
    model = OneVsRestGreedy(5, options=GreedyOptions(swaps=2)).fit(*digits)
    in_use = {atom for found in model.estimators_ for atom in found.model_.path.rounds[-1].support}
    assert model.n_features_used_[-1] == len(in_use)
    assert set(model.selected_.tolist()) == in_use


def test_path_has_a_row_per_round(model):
    frame = pd.DataFrame(model.path_)
    assert list(frame) == ["features", "n_features", "loss", "seconds"]
    assert len(frame) == 6
    assert frame["loss"].is_monotonic_decreasing
    assert frame["loss"][0] < model.null_loss_
    assert frame["features"][2] == tuple(found.path_["feature"][2] for found in model.estimators_)
    assert frame["n_features"].tolist() == model.n_features_used_.tolist()
    mean = np.mean([found.path_["loss"] for found in model.estimators_], axis=0)
    assert frame["loss"].to_numpy() == pytest.approx(mean)


def test_truncate_is_staged(model, digits):
    X, _ = digits
    stages = zip(model.staged_decision_function(X), model.staged_predict(X), strict=True)
    for size, (scores, labels) in enumerate(stages, start=1):
        smaller = model.truncate(size)
        assert np.array_equal(scores, smaller.decision_function(X))
        assert np.array_equal(labels, smaller.predict(X))
        assert smaller.n_features_used_.tolist() == model.n_features_used_[:size].tolist()
        assert smaller.n_features_to_select == size
        assert all(len(found.selected_) == size for found in smaller.estimators_)
    assert len(model.estimators_[0].selected_) == 6


@pytest.mark.parametrize("size", [0, 7])
def test_truncate_out_of_range(model, size):
    with pytest.raises(ValueError, match="1 to 6 features per class"):
        model.truncate(size)
    with pytest.raises(TypeError, match="whole number"):
        model.truncate(2.0)


def test_cost_counts_each_weight(model):
    assert model.cost_ == (60, 0)
    assert model.truncate(2).cost_ == (20, 0)


def test_as_a_selector(model, digits):
    X, _ = digits
    assert np.array_equal(model.transform(X), X[:, np.sort(model.selected_)])
    assert model.get_feature_names_out().tolist() == [f"x{j}" for j in np.sort(model.selected_)]


# --- classes and probabilities


@pytest.mark.parametrize("loss", ["margin", "logistic", MarginSoftmax(0.5)])
def test_probabilities(digits, loss):
    X, y = (part[:400] for part in digits)
    model = OneVsRestGreedy(3, loss=loss).fit(X, y)
    P = model.predict_proba(X)
    assert P.sum(axis=1) == pytest.approx(1.0)
    own = np.stack([found.predict_proba(X)[:, 1] for found in model.estimators_], axis=1)
    assert own / own.sum(axis=1, keepdims=True) == pytest.approx(P)
    assert np.array_equal(model.classes_[P.argmax(axis=1)], model.predict(X))
    assert np.exp(model.predict_log_proba(X)) == pytest.approx(P)


def test_rows_that_no_class_wants():
    X, y = load_wine(return_X_y=True)
    model = OneVsRestGreedy(2, loss="logistic").fit(X, y)
    for found in model.estimators_:
        found.model_.path.rounds[-1].intercept[:] = [1e6, -1e6]
    assert np.isfinite(model.predict_proba(X)).all()
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(1.0)


def test_two_classes_are_one_path():
    X, y = load_breast_cancer(return_X_y=True)
    labels = np.where(y == 1, "yes", "no")
    model, alone = OneVsRestGreedy(4).fit(X, labels), ShareBoostClassifier(4).fit(X, labels)
    assert len(model.estimators_) == 1
    assert np.array_equal(model.coef_, alone.coef_)
    assert np.array_equal(model.decision_function(X), alone.decision_function(X))
    assert np.array_equal(model.predict(X), alone.predict(X))
    assert np.array_equal(model.predict_proba(X), alone.predict_proba(X))
    assert model.n_features_used_.tolist() == [1, 2, 3, 4]
    assert np.array_equal(model.selected_, alone.selected_)


def test_a_class_that_no_feature_helps():
    X, y = load_iris(return_X_y=True)
    weight = np.where(y == 2, 0.0, 1.0)
    with pytest.warns(FewerFeaturesWarning, match="For 1 of 3 classes, the first of them 2: Stopp"):
        model = OneVsRestGreedy(2).fit(X, y, sample_weight=weight)
    assert set(model.predict(X)) == {0, 1}
    assert model.path_["features"][0][2] is None
    assert len(model.truncate(1).estimators_[2].selected_) == 0
    assert np.isfinite(model.predict_proba(X)).all()


# --- data


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_matrix])
def test_sparse_data(model, digits, form):
    X, y = digits
    found = OneVsRestGreedy(6).fit(form(X), y)
    assert np.array_equal(found.selected_, model.selected_)
    assert found.decision_function(form(X)) == pytest.approx(model.decision_function(X), abs=1e-6)


def test_float32(digits):
    X, y = digits
    model = OneVsRestGreedy(4).fit(X.astype(np.float32), y)
    assert model.coef_.dtype == np.float32
    assert model.score(X, y) > 0.8


def test_integer_weights_are_repeated_rows():
    X, y = load_wine(return_X_y=True)
    counts = np.random.default_rng(0).integers(0, 3, len(X))
    given = {"alpha": 1e-3, "options": GreedyOptions(tol=1e-10)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weighted = OneVsRestGreedy(3, **given).fit(X, y, sample_weight=counts)
        repeated = OneVsRestGreedy(3, **given).fit(np.repeat(X, counts, 0), np.repeat(y, counts))
    assert np.array_equal(weighted.selected_, repeated.selected_)
    assert weighted.coef_ == pytest.approx(repeated.coef_, rel=1e-3, abs=1e-8)


def test_names(digits):
    X, y = digits
    table = pd.DataFrame(X, columns=[f"pixel {column}" for column in range(64)])
    model = OneVsRestGreedy(2).fit(table, y)
    assert model.predict(table).shape == y.shape
    assert model.estimators_[3].predict(table).dtype == bool
    assert model.estimators_[3].get_feature_names_out()[0].startswith("pixel")


# --- pools


def test_groups(digits):
    X, y = digits
    rows = [f"row {column // 8}" for column in range(64)]
    model = OneVsRestGreedy(2, pool=Columns(groups=rows)).fit(X, y)
    assert model.n_features_used_[-1] <= 8
    assert len(model.selected_) == 8 * model.n_features_used_[-1]
    assert model.path_["features"][0][0].startswith("row ")
    assert model.coef_.shape == (10, 64)
    for size, scores in enumerate(model.staged_decision_function(X), start=1):
        assert np.array_equal(scores, model.truncate(size).decision_function(X))


@dataclass
class Squares(Columns):
    """Squares of columns, with no more than the engine and prediction need."""

    plain = False
    prepared = 0

    def prepare(self, X, **options):
        Squares.prepared += 1
        return Columns().prepare(X**2, **options)

    def evaluate(self, X, atoms):
        return X[:, list(atoms)] ** 2


def test_a_pool_of_the_users_own_is_prepared_once(digits):
    X, y = digits
    Squares.prepared = 0
    model = OneVsRestGreedy(3, pool=Squares()).fit(X, y)
    assert Squares.prepared == 1
    plain = OneVsRestGreedy(3).fit(X**2, y)
    assert np.array_equal(model.selected_, plain.selected_)
    assert np.array_equal(model.predict(X), plain.predict(X**2))
    with pytest.raises(AttributeError, match="Each of estimators_ has the weights"):
        _ = model.coef_


class Drawing(Squares):
    """A pool that wants a seed."""

    seed = None

    def prepare(self, X, *, random_state, **options):
        Drawing.seed = random_state
        return super().prepare(X, **options)


def test_pools_that_draw_get_the_seed(digits):
    OneVsRestGreedy(2, pool=Drawing(), random_state=7).fit(*digits)
    assert Drawing.seed == 7


class Bare:
    """A pool without a base class that tells no costs."""

    prepare, evaluate = Squares().prepare, Squares().evaluate
    feature_indices, n_columns = Squares().feature_indices, Squares().n_columns


def test_a_pool_that_tells_little(digits):
    X, y = digits
    model = OneVsRestGreedy(2, pool=Bare()).fit(X, y)
    assert model.cost_ == (10 * 2, 0)  # the weights alone
    assert np.array_equal(model.predict(X), OneVsRestGreedy(2).fit(X**2, y).predict(X**2))


@pytest.mark.usefixtures("copied_jobs")
def test_jobs_on_copies(model, digits):
    X, y = digits
    found = OneVsRestGreedy(6, n_jobs=2).fit(X, y)
    assert np.array_equal(found.coef_, model.coef_)
    assert len({id(each.model_.pool) for each in found.estimators_}) == 1


# --- warnings, mistakes, interrupts, progress


def test_one_warning_for_all_classes():
    X, y = load_iris(return_X_y=True)
    with pytest.warns(FewerFeaturesWarning, match="^n_features_to_select=9 asks for more") as told:
        OneVsRestGreedy(9).fit(X, y)
    assert len(told) == 1
    with pytest.warns(LightRowsWarning, match="^sample_weight adds up to 1 for 150 rows") as told:
        OneVsRestGreedy(2).fit(X, y, sample_weight=np.full(150, 1 / 150))
    assert len(told) == 1


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"n_features_to_select": 0}, ValueError, "at least 1"),
        ({"n_features_to_select": 2.5}, TypeError, "whole number"),
        ({"alpha": -1.0}, ValueError, "alpha=-1.0"),
        ({"options__rule": "best"}, ValueError, "rule='best' is not known"),
        ({"loss": "hinge"}, ValueError, "logistic.*margin"),
        ({"pool": 3}, TypeError, "is not a pool"),
        ({"options__scale": "yes"}, ValueError, "choose 'std', 'max' or False"),
    ],
)
def test_bad_parameters(params, error, message):
    with pytest.raises(error, match=message):
        OneVsRestGreedy().set_params(**params).fit(*load_iris(return_X_y=True))


def test_bad_data():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="at least 2 classes"):
        OneVsRestGreedy().fit(X, np.zeros(150))
    with pytest.raises(ValueError, match="zero for every row"):
        OneVsRestGreedy().fit(X, y, sample_weight=np.zeros(150))
    with pytest.raises(ValueError, match="NaN"):
        OneVsRestGreedy().fit(X * np.nan, y)
    with pytest.raises(NotFittedError):
        OneVsRestGreedy().predict(X)


@pytest.mark.parametrize("at", [1, 4, 5, 6])
def test_an_interrupt_leaves_the_earlier_fit(digits, monkeypatch, at):
    X, y = digits
    model = OneVsRestGreedy(2, options=GreedyOptions(rule="l1")).fit(X, y)
    before = model.predict(X)
    real, calls = PreparedColumns.top, []

    def top(*args, **options):
        calls.append(at)
        if len(calls) == at:
            raise KeyboardInterrupt
        return real(*args, **options)

    monkeypatch.setattr(PreparedColumns, "top", top)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y % 3)
    assert np.array_equal(model.predict(X), before)


class Recorder:
    def __init__(self):
        self.ended = []

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, X, fitted_estimator):
        self.ended.append(context.task_name)
        if fitted_estimator is not None:
            assert fitted_estimator.predict(X).shape == (len(X),)


def test_progress():
    recorder = Recorder()
    OneVsRestGreedy(2).set_callbacks(recorder).fit(*load_iris(return_X_y=True))
    assert recorder.ended == ["class", "class", "class", "fit"]


# --- model files


@pytest.mark.parametrize(
    "settings", [{}, {"pool": Columns(groups=np.repeat(range(8), 8)), "loss": MarginSoftmax(0.5)}]
)
@pytest.mark.parametrize("classes", [10, 2])
def test_stored_models(digits, tmp_path, settings, classes):
    X, y = digits
    model = OneVsRestGreedy(3).set_params(**settings).fit(X, y % classes)
    mixnorm.save(model, tmp_path / "model.mixnorm")
    loaded = mixnorm.load(tmp_path / "model.mixnorm")
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert np.array_equal(loaded.coef_, model.coef_)
    assert np.array_equal(loaded.n_features_used_, model.n_features_used_)
    assert loaded.cost_ == model.cost_
    each = zip(loaded.estimators_, model.estimators_, strict=True)
    assert all(np.array_equal(one.predict(X), other.predict(X)) for one, other in each)
    assert loaded.estimators_[0].model_.pool is loaded.estimators_[-1].model_.pool


def test_the_pool_and_loss_of_the_fit_are_stored(digits, tmp_path):
    X, y = digits
    model = OneVsRestGreedy(2, loss="logistic").fit(X, y)
    model.set_params(loss=None, pool=Columns(groups=np.repeat(range(8), 8)))
    mixnorm.save(model, tmp_path / "model.mixnorm")
    loaded = mixnorm.load(tmp_path / "model.mixnorm")
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))


def more_outputs(model):
    path = replace(model.paths[0], rounds=(), null_intercept=np.zeros(3))
    return replace(model, paths=(path, *model.paths[1:]))


DAMAGE = {
    "other classes": lambda model: replace(model, outputs=replace(model.outputs, classes=[5])),
    "more classes": lambda model: replace(
        model, outputs=replace(model.outputs, classes=np.arange(5))
    ),
    "no loss": lambda model: replace(model, outputs=replace(model.outputs, loss=None)),
    "fewer paths": lambda model: replace(model, paths=model.paths[1:]),
    "no paths": lambda model: replace(model, paths=(1, 2, 3)),
    "another width": lambda model: replace(model, inputs=Inputs(1)),
    "more outputs": more_outputs,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_model_is_refused(damage, tmp_path):
    model = OneVsRestGreedy(2).fit(*load_iris(return_X_y=True))
    model.model_ = DAMAGE[damage](model.model_)
    with pytest.raises(ModelFileError, match="could not be read again"):
        mixnorm.save(model, tmp_path / "model.mixnorm")


def test_a_file_that_would_take_too_much_memory():
    model = OneVsRestGreedy(2).fit(*load_iris(return_X_y=True)).model_
    with pytest.raises(MemoryError, match="max_bytes"):
        replace(model, inputs=Inputs(10**9)).check(2**30)


def test_a_broken_model_is_not_stored(tmp_path):
    model = OneVsRestGreedy(2).fit(*load_iris(return_X_y=True))
    model.alpha = -1.0
    with pytest.raises(ModelFileError, match="alpha=-1.0"):
        mixnorm.save(model, tmp_path / "model.mixnorm")


def test_a_class_that_warns_twice_counts_once():
    told = {FewerFeaturesWarning: [("red", "few"), ("red", "fewer"), ("blue", "few")]}
    with pytest.warns(
        FewerFeaturesWarning, match="^For 2 of 3 classes, the first of them red: few"
    ):
        _report(told, 3)
