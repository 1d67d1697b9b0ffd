"""Penalties, limits, several features per round and the way back, as a user meets them."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits, load_iris, load_wine, make_regression
from sklearn.linear_model import Lasso
from sklearn.model_selection import GridSearchCV

import mixnorm
from mixnorm import (
    GreedyOptions,
    ShareBoostClassifier,
    ShareBoostClassifierCV,
    ShareBoostRegressor,
    ShareBoostRegressorCV,
)
from mixnorm.engines.penalties import SmoothMaxNorm
from mixnorm.exceptions import FewerFeaturesWarning, InterruptedFitWarning
from mixnorm.pools import Columns

CLASSIFIERS = [ShareBoostClassifier, ShareBoostClassifierCV]
EVERYTHING = {
    "options__penalty": "l1",
    "options__backward": 2,
    "options__atoms_per_round": 2,
    "max_inputs": 4,
    "cost_budget": 5.0,
    "options__rule": "exact",
}


DEFAULTS = {
    "options__penalty": "ridge",
    "options__backward": 0,
    "options__atoms_per_round": 1,
    "max_inputs": None,
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults_are_what_was_there_before(digits, name):
    X, y = digits
    plain = ShareBoostClassifier(8).fit(X, y)
    told = ShareBoostClassifier(8).set_params(**{name: DEFAULTS[name]}).fit(X, y)
    assert np.array_equal(plain.coef_, told.coef_)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"options__penalty": "l2"}, ValueError, "'l1', 'linf,1', 'ridge'"),
        ({"options__penalty": ["l1"]}, ValueError, "penalty"),
        ({"options__penalty": SmoothMaxNorm(beta=0.0)}, ValueError, "beta=0.0"),
        ({"options__penalty": SmoothMaxNorm}, ValueError, "penalty object"),
        ({"options__backward": -1}, ValueError, "backward=-1 must be at least 0"),
        ({"options__backward": 1.5}, TypeError, "backward=1.5 must be a whole number"),
        ({"options__atoms_per_round": 0}, ValueError, "atoms_per_round=0 must be at least 1"),
        ({"options__atoms_per_round": True}, TypeError, "atoms_per_round"),
        ({"max_inputs": 0}, ValueError, "max_inputs=0 must be at least 1"),
        ({"max_inputs": "all"}, TypeError, "max_inputs"),
        ({"cost_budget": 0}, ValueError, "cost_budget=0 must be positive"),
        ({"cost_budget": -2.0}, ValueError, "cost_budget"),
        ({"cost_budget": np.inf}, ValueError, "cost_budget"),
        ({"cost_budget": "little"}, TypeError, "cost_budget"),
    ],
)
@pytest.mark.parametrize("estimator", [*CLASSIFIERS, ShareBoostRegressor, ShareBoostRegressorCV])
def test_bad_parameters(estimator, parameters, error, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(error, match=message):
        estimator().set_params(**parameters).fit(X, y)


# --- penalties


def test_l1_leaves_weights_at_zero(digits):
    X, y = digits
    model = ShareBoostClassifier(12, alpha=3e-3, options=GreedyOptions(penalty="l1")).fit(X, y)
    chosen = model.coef_[:, model.selected_]
    assert 0.2 < np.mean(chosen == 0.0) < 0.9
    assert np.all(np.any(chosen != 0.0, axis=0))
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e4])
def test_l1_regression_is_the_lasso_on_the_chosen_columns(size):
    """In the units of the targets, whatever they are."""
    X, Y = make_regression(80, 20, n_informative=4, n_targets=3, noise=5.0, random_state=0)
    Y, alpha = size * Y, 2.0 * size
    model = ShareBoostRegressor(4, alpha=alpha, options=GreedyOptions(penalty="l1", tol=1e-12)).fit(
        X, Y
    )
    scale = X[:, model.selected_].std(axis=0)
    peer = Lasso(alpha=alpha, tol=1e-10, max_iter=100_000).fit(X[:, model.selected_] / scale, Y)
    got = model.coef_[:, model.selected_] * scale
    np.testing.assert_allclose(got, peer.coef_, rtol=1e-4, atol=1e-4 * size)
    np.testing.assert_allclose(model.intercept_, peer.intercept_, rtol=1e-4, atol=1e-4 * size)


@pytest.mark.parametrize("penalty", ["ridge", "linf,1", "l1"])
def test_the_unit_of_the_targets_does_not_matter(penalty):
    """A penalty of degree p on targets in another unit is one of another weight."""
    X, y = load_diabetes(return_X_y=True)
    degree = 2 if penalty == "ridge" else 1
    one = ShareBoostRegressor(5, alpha=0.5, options=GreedyOptions(penalty=penalty, tol=1e-10)).fit(
        X, y
    )
    alpha = 0.5 * 1000.0 ** (2 - degree)
    other = ShareBoostRegressor(
        5, alpha=alpha, options=GreedyOptions(penalty=penalty, tol=1e-10)
    ).fit(X, 1000.0 * y)
    assert np.array_equal(one.selected_, other.selected_)
    np.testing.assert_allclose(other.coef_, 1000.0 * one.coef_, rtol=1e-5, atol=1e-5)


def test_linf_evens_out_the_weights_of_a_feature(digits):
    X, y = digits
    shares = []
    for penalty in ("ridge", SmoothMaxNorm(beta=50.0)):
        model = ShareBoostClassifier(8, alpha=5e-3, options=GreedyOptions(penalty=penalty)).fit(
            X, y
        )
        sizes = np.sort(np.abs(model.coef_[:, model.selected_]), axis=0)
        shares.append(np.mean(sizes[-3] / sizes[-1]))
    assert shares[1] > shares[0] + 0.1


def test_a_penalty_in_a_grid():
    X, y = load_iris(return_X_y=True)
    model = ShareBoostClassifier(2, options=GreedyOptions(penalty=SmoothMaxNorm()))
    search = GridSearchCV(model, {"options__penalty__beta": [1.0, 10.0]}, cv=2).fit(X, y)
    assert search.best_estimator_.options.penalty.beta in (1.0, 10.0)


# --- limits


@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_max_inputs(digits, estimator):
    X, y = digits
    groups = np.repeat(np.arange(32), 2)
    pool = Columns(groups=groups)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a limit that was asked for is nothing to warn of
        model = estimator(max_inputs=6, pool=pool).fit(X, y)
    assert len(model.selected_) <= 6
    assert model.get_support().sum() <= 6


def test_a_size_that_the_limits_do_not_allow_is_warned_of(digits):
    X, y = digits
    with pytest.warns(FewerFeaturesWarning, match="3 of 5 features: no other feature within max_"):
        ShareBoostClassifier(5, max_inputs=3).fit(X, y)
    with pytest.warns(FewerFeaturesWarning, match="within cost_budget=2.5 lowers"):
        ShareBoostClassifier(5, cost_budget=2.5, pool=Columns(costs=np.ones(64))).fit(X, y)


@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_cost_budget(estimator):
    X, y = load_wine(return_X_y=True)
    costs = np.arange(1.0, 14.0)
    pool = Columns(costs=costs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = estimator(cost_budget=30.0, pool=pool).fit(X, y)
    assert costs[model.selected_].sum() <= 30.0
    everything = estimator(cost_budget=91.0, pool=pool).fit(X, y)
    assert costs[everything.selected_].sum() <= 91.0


def test_a_budget_alone_decides_how_many(digits):
    X, y = digits
    pool = Columns(costs=np.full(64, 0.25))
    model = ShareBoostClassifier(cost_budget=8.0, pool=pool).fit(X, y)
    assert len(model.selected_) == 32  # more than the twenty without a budget
    assert model.score(X, y) > 0.97


def test_cheap_features_come_first():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    X[:, 2] = X[:, 0] + rng.standard_normal(300)  # not as good, but a tenth of the price
    dear = ShareBoostClassifier(1, pool=Columns(costs=[10.0, 10.0, 1.0, 1.0])).fit(X, y)
    even = ShareBoostClassifier(1).fit(X, y)
    assert dear.selected_.tolist() == [2]
    assert even.selected_[0] in (0, 1)


class NoPrices:
    """A pool of the user's own that knows neither inputs nor prices, bound to data."""

    evaluate = staticmethod(Columns().evaluate)
    feature_indices = staticmethod(Columns().feature_indices)
    n_columns = staticmethod(Columns().n_columns)

    def prepare(self, X, **options):
        data = Columns().prepare(X, **options)

        class Prepared:
            n_usable = data.n_usable
            top, columns, scale = data.top, data.columns, data.scale

        return Prepared()


def test_pools_that_cannot_keep_a_limit():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(TypeError, match="Prepared has no prices .*no method price"):
        ShareBoostClassifier(pool=NoPrices(), cost_budget=2).fit(X, y)


def test_the_pool_tells_the_inputs_that_the_bound_one_does_not():
    X, y = load_iris(return_X_y=True)
    model = ShareBoostClassifier(2, pool=NoPrices(), max_inputs=2).fit(X, y)
    plain = ShareBoostClassifier(2, max_inputs=2).fit(X, y)
    assert model.selected_.tolist() == plain.selected_.tolist()
    assert np.array_equal(model.predict(X), plain.predict(X))
    assert type(model.pool_) is NoPrices
    assert model.cost_ == (2 * 3, 0)  # columns are free where a pool does not tell


@pytest.mark.parametrize(
    ("pool", "message"),
    [
        (Columns, r"pool=<class .* is not a pool"),
        ("columns", "pool='columns' is not a pool"),
        (type("Half", (), {"prepare": None, "evaluate": None})(), "Half has no method feature_ind"),
    ],
)
def test_what_is_no_pool(pool, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(TypeError, match=message):
        ShareBoostClassifier(pool=pool).fit(X, y)


# --- several features per round, and the way back


def test_path_with_several_features_per_round(digits):
    X, y = digits
    model = ShareBoostClassifier(15, options=GreedyOptions(atoms_per_round=4)).fit(X, y)
    assert len(model.path_["loss"]) == 15
    assert np.all(np.diff(model.path_["loss"]) < 0.0)
    stages = list(model.staged_predict(X))
    for size in (1, 6, 15):
        smaller = model.truncate(size)
        assert len(smaller.selected_) == size
        assert np.array_equal(smaller.predict(X), stages[size - 1])


def test_the_way_back_gives_better_small_models(digits):
    X, y = digits
    there = ShareBoostClassifier(20, alpha=1e-6, options=GreedyOptions(rule="l1")).fit(X, y)
    back = clone(there).set_params(options__backward=4).fit(X, y)
    assert len(back.selected_) == 20 == len(back.path_["loss"])
    ratio = back.path_["loss"] / there.path_["loss"]
    assert ratio.max() < 1.02  # each solved to a tolerance of its own
    assert ratio.min() < 0.97
    for size in (3, 7, 20):
        smaller = back.truncate(size)
        assert len(smaller.selected_) == size
        assert smaller.path_["feature"][-1] in smaller.selected_


def test_a_path_from_the_way_back_is_not_continued(digits):
    X, y = digits
    model = ShareBoostClassifier(4, warm_start=True, options=GreedyOptions(backward=2)).fit(X, y)
    with pytest.raises(ValueError, match="backward=2.*warm_start=False"):
        model.set_params(n_features_to_select=6).fit(X, y)
    with pytest.raises(ValueError, match="backward.*has changed since"):
        model.set_params(options__backward=0).fit(X, y)
    assert len(model.set_params(warm_start=False).fit(X, y).selected_) == 6


def test_warm_start_refuses_another_penalty():
    X, y = load_iris(return_X_y=True)
    model = ShareBoostClassifier(2, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="has changed since"):
        model.set_params(n_features_to_select=3, options__penalty="l1").fit(X, y)


def test_warm_start_under_limits(digits):
    X, y = digits
    model = ShareBoostClassifier(4, max_inputs=4, warm_start=True).fit(X, y)
    model.set_params(n_features_to_select=6, max_inputs=6, options__atoms_per_round=2).fit(X, y)
    assert len(model.selected_) == 6
    with pytest.raises(ValueError, match="max_inputs=3"):
        model.set_params(max_inputs=3).fit(X, y)
    assert len(model.selected_) == 6


def test_interrupt_beyond_the_wanted_size(digits, interrupt_at):
    X, y = digits
    interrupt_at(8)
    with pytest.warns(InterruptedFitWarning, match="after 6 of 6 rounds"):
        model = ShareBoostClassifier(6, options=GreedyOptions(backward=4)).fit(X, y)
    assert len(model.selected_) == 6


class Counter:
    """Counts rounds, and may ask to stop."""

    def __init__(self, stop_at=None):
        self.stop_at, self.begun, self.sizes = stop_at, 0, []

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        self.begun += context.task_name == "round"

    def on_fit_task_end(self, estimator, context, *, fitted_estimator):
        if context.task_name == "round":
            self.sizes.append(len(fitted_estimator.selected_))
        return len(self.sizes) == self.stop_at


def test_progress_goes_there_and_back(digits):
    X, y = digits
    counter = Counter()
    ShareBoostClassifier(5, options=GreedyOptions(backward=2)).set_callbacks(counter).fit(X, y)
    assert counter.sizes == [1, 2, 3, 4, 5, 5, 5] + [5] * 6
    assert counter.begun == 13
    counter = Counter(stop_at=9)
    model = (
        ShareBoostClassifier(5, options=GreedyOptions(backward=2)).set_callbacks(counter).fit(X, y)
    )
    assert len(counter.sizes) == 9
    assert len(model.selected_) == 5


# --- together, and stored


@pytest.mark.filterwarnings("ignore::mixnorm.exceptions.FewerFeaturesWarning")
@pytest.mark.parametrize("estimator", [*CLASSIFIERS, ShareBoostRegressor, ShareBoostRegressorCV])
def test_everything_together(estimator, tmp_path):
    X, y = load_wine(return_X_y=True)
    pool = Columns(costs=np.linspace(0.5, 2.0, 13))
    model = estimator(4, alpha=1e-4, pool=pool).set_params(**EVERYTHING)
    if "cv" in model.get_params():
        model.set_params(cv=2)
    model.fit(X, y)
    assert 1 <= len(model.selected_) <= 4
    assert model.score(X, y) > 0.5
    copies = [pickle.loads(pickle.dumps(model)), clone(model).fit(X, y)]
    mixnorm.save(model, tmp_path / "model.mixnorm")
    copies.append(mixnorm.load(tmp_path / "model.mixnorm"))
    for copy in copies:
        assert np.array_equal(copy.predict(X), model.predict(X))
        assert copy.options.penalty == "l1"


def test_the_cross_validated_form_passes_its_parameters_on(digits):
    X, y = digits
    model = ShareBoostClassifierCV(5, cv=2, pool=Columns(costs=np.ones(64))).set_params(
        **EVERYTHING
    )
    plain = model._make_learner(ShareBoostClassifier)
    assert {name: plain.get_params()[name] for name in EVERYTHING} == EVERYTHING
    assert len(model.fit(X[:400], y[:400]).selected_) <= 4


def test_a_pool_that_draws_is_given_the_random_state():
    from mixnorm.pools import Pieces

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = (np.hypot(*X.T) < 1.0).astype(int)
    pool = Pieces(n_centers=10, n_radii=4)
    first = ShareBoostClassifier(3, pool=pool, random_state=0).fit(X, y)
    again = ShareBoostClassifier(3, pool=pool, random_state=0).fit(X, y)
    other = ShareBoostClassifier(3, pool=pool, random_state=1).fit(X, y)
    assert first.path_["feature"].tolist() == again.path_["feature"].tolist()
    assert first.path_["feature"].tolist() != other.path_["feature"].tolist()
    assert first.score(X, y) > 0.8


def test_a_pickled_path_can_be_continued():
    X, y = load_digits(return_X_y=True)
    pool = Columns(groups=[str(number // 2) for number in range(64)])
    model = ShareBoostClassifier(2, pool=pool, warm_start=True, alpha=1).fit(X, y)
    again = pickle.loads(pickle.dumps(model)).set_params(n_features_to_select=3, alpha=1.0)
    assert len(again.fit(X, y).path_["loss"]) == 3


@pytest.mark.parametrize("options", [{"options__penalty": "l1", "alpha": 1e-3}, {"alpha": 0.0}])
def test_groups_with_an_empty_column(options):
    X, y = load_digits(return_X_y=True)
    X = np.column_stack([X[:, 10:13], np.zeros(len(X))])
    pool = Columns(groups=[0, 1, 2, 2])
    model = ShareBoostClassifier(2, pool=pool, options=GreedyOptions(rule="column"))
    model.set_params(**options).fit(X, y)
    assert len(model.path_["loss"]) == 2
