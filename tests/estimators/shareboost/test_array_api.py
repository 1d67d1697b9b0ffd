"""ShareBoost on arrays of other libraries: the same models, in the namespace of ``X``."""

import copy
import pickle
import sys
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.utils.estimator_checks import (
    check_array_api_input_and_values,
    check_array_api_mixed_inputs,
)

import mixnorm.pools
from mixnorm import (
    GreedyOptions,
    JointBoostClassifier,
    OneVsRestGreedy,
    ShareBoostClassifier,
    ShareBoostClassifierCV,
    ShareBoostRegressor,
    ShareBoostRegressorCV,
    load,
    save,
)
from mixnorm._array import is_foreign, to_numpy
from mixnorm.exceptions import FewerFeaturesWarning
from mixnorm.pools import Columns, Pool, Products, Stumps

FINE = GreedyOptions(tol=1e-10)
BOTH = [ShareBoostClassifier(options=FINE), ShareBoostRegressor(options=FINE)]
# Both namespaces run the same steps in float64, to a tolerance far below this.
CLOSE = {"rtol": 1e-8, "atol": 1e-10}


@pytest.fixture
def dispatch():
    """Within, scikit-learn leaves arrays in their namespaces."""
    with sklearn.config_context(array_api_dispatch=True):
        yield


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def kind(xp):
    return type(xp.asarray([0.0]))


def targets(model, iris):
    X, y = iris
    return y if isinstance(model, ShareBoostClassifier) else X[:, :2] * X[:, 2:] + 7.0


@pytest.fixture(scope="module")
def fits():
    """Fits by class and namespace, made when first asked for."""
    return {}


@pytest.fixture
def there(model, iris, xp, dispatch, fits):
    """The model, fitted to arrays of the other library; tests must not change it."""
    key = type(model), kind(xp)
    if key not in fits:
        fits[key] = clone(model).fit(xp.asarray(iris[0]), xp.asarray(targets(model, iris)))
    return fits[key]


# --- scikit-learn's own checks


@pytest.mark.filterwarnings("ignore")  # the checks feed data that deserves warnings
@pytest.mark.parametrize(
    ("library", "weights"),
    [("numpy", True), ("array_api_strict", True), ("torch", False), ("torch", True)],
)
@pytest.mark.parametrize("model", BOTH, ids=lambda model: type(model).__name__)
def test_values_are_those_of_numpy(model, library, weights):
    pytest.importorskip(library)
    name = type(model).__name__
    check_array_api_input_and_values(name, model, library, check_sample_weight=weights)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", BOTH, ids=lambda model: type(model).__name__)
def test_values_do_not_depend_on_the_namespace_of_the_others(model):
    pytest.importorskip("torch")
    from sklearn.utils._array_api import NamespaceAndDevice

    spaces = NamespaceAndDevice("torch", "cpu"), NamespaceAndDevice("array_api_strict", "device1")
    check_array_api_mixed_inputs(type(model).__name__, model, *spaces, check_values=True)


@pytest.mark.parametrize("weights", [{0: 3.0, 2: 0.5}, "balanced"])
def test_class_weights_of_labels_of_other_libraries(weights, iris, dispatch):
    torch = pytest.importorskip("torch")
    X, y = iris[0][:130], iris[1][:130]
    model = ShareBoostClassifier(2, class_weight=weights, options=FINE)
    here = model.fit(X, y).coef_
    there = clone(model).fit(torch.asarray(X), torch.asarray(y)).coef_
    assert_allclose(to_numpy(there), here, **CLOSE)


def test_tags():
    for model in (*BOTH, ShareBoostClassifierCV(), ShareBoostRegressorCV()):
        assert sklearn.utils.get_tags(model).array_api_support
    assert not sklearn.utils.get_tags(OneVsRestGreedy()).array_api_support


# --- fits


@pytest.mark.parametrize(
    ("model", "options"),
    [
        *((model, {}) for model in BOTH),
        *((model, {"fit_intercept": False, "options__scale": False}) for model in BOTH),
        (BOTH[0], {"pool": Columns(groups=["petal", "petal", "sepal", "sepal"])}),
        (BOTH[1], {"options__penalty": "l1", "alpha": 1e-3}),
        (BOTH[0], {"options__swaps": 1, "options__rule": "exact"}),
        (BOTH[1], {"options__backward": 1}),
    ],
    ids=str,
)
def test_the_same_model(model, options, iris, xp, dispatch):
    X, y = iris[0], targets(model, iris)
    weight = np.linspace(0.0, 2.0, len(X))
    size = 2 if "pool" in options else 3
    model = clone(model).set_params(n_features_to_select=size, **options)
    here = clone(model).fit(X, y, sample_weight=weight)
    there = clone(model).fit(xp.asarray(X), xp.asarray(y), sample_weight=xp.asarray(weight))
    assert type(there.coef_) is type(there.intercept_) is type(there.selected_) is kind(xp)
    assert_array_equal(to_numpy(there.selected_), here.selected_)
    close = (
        {"rtol": 1e-5, "atol": 1e-5} if "options__penalty" in options else CLOSE
    )  # kinks are slower
    assert_allclose(to_numpy(there.coef_), here.coef_, **close)
    assert_allclose(to_numpy(there.intercept_), here.intercept_, **close)
    assert_array_equal(there.get_support(), here.get_support())
    assert there.null_loss_ == pytest.approx(here.null_loss_, rel=1e-10)
    assert_array_equal(there.path_["feature"], here.path_["feature"])
    assert there.cost_ == here.cost_
    assert there.score(xp.asarray(X), xp.asarray(y)) == pytest.approx(here.score(X, y), abs=1e-6)
    for got, wanted in zip(
        there.staged_predict(xp.asarray(X)), here.staged_predict(X), strict=True
    ):
        assert type(got) is kind(xp)
        assert_allclose(to_numpy(got), wanted, **close)


def test_methods_of_the_classifier(iris, xp, dispatch):
    X, y = iris
    here = ShareBoostClassifier(3, options=FINE).fit(X, y)
    there = ShareBoostClassifier(3, options=FINE).fit(xp.asarray(X), xp.asarray(y))
    methods = ("predict", "decision_function", "predict_proba", "predict_log_proba", "transform")
    for method in methods:
        got = getattr(there, method)(xp.asarray(X))
        assert type(got) is kind(xp)
        assert_allclose(to_numpy(got), getattr(here, method)(X), rtol=1e-7, atol=1e-9)
    got = there.inverse_transform(there.transform(xp.asarray(X)))
    assert type(got) is kind(xp)
    assert_array_equal(to_numpy(got), here.inverse_transform(here.transform(X)))
    stages = zip(
        there.staged_decision_function(xp.asarray(X)),
        here.staged_decision_function(X),
        strict=True,
    )
    for got, wanted in stages:
        assert type(got) is kind(xp)
        assert_allclose(to_numpy(got), wanted, **CLOSE)


def test_two_classes(iris, xp, dispatch):
    X, y = iris[0][50:], iris[1][50:]
    here = ShareBoostClassifier(2, options=FINE).fit(X, y)
    there = ShareBoostClassifier(2, options=FINE).fit(xp.asarray(X), xp.asarray(y))
    assert there.coef_.shape == (1, 4)
    assert there.decision_function(xp.asarray(X)).shape == (100,)
    assert_allclose(to_numpy(there.coef_), here.coef_, **CLOSE)


def test_one_output_and_many(iris, xp, dispatch):
    X, y = iris[0], iris[0][:, 0] * iris[0][:, 2]
    single = ShareBoostRegressor(2).fit(xp.asarray(X), y)  # targets follow X
    assert isinstance(single.intercept_, float)
    assert single.coef_.shape == (4,)
    assert type(single.predict(xp.asarray(X))) is kind(xp)
    assert_allclose(to_numpy(single.coef_), ShareBoostRegressor(2).fit(X, y).coef_, **CLOSE)
    many = ShareBoostRegressor(2).fit(xp.asarray(X), X[:, :3])
    assert many.predict(xp.asarray(X)).shape == (150, 3)


@pytest.mark.parametrize("dtype", ["float32", "uint8", "int64"])
def test_other_dtypes(dtype, xp, dispatch):
    """In single precision the same features are chosen, since these classes are well apart."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:300].astype(dtype), y[:300]
    here = ShareBoostClassifier(3).fit(X, y)
    there = ShareBoostClassifier(3).fit(xp.asarray(X), xp.asarray(y))
    work = xp.float64 if dtype == "int64" else xp.float32
    assert there.coef_.dtype == work
    assert there.predict_proba(xp.asarray(X)).dtype == work
    assert_array_equal(to_numpy(there.selected_), here.selected_)
    assert_allclose(to_numpy(there.coef_), here.coef_, rtol=1e-2, atol=1e-4)
    assert np.mean(to_numpy(there.predict(xp.asarray(X))) == here.predict(X)) > 0.99


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32, bool, float, object, "U1"])
def test_labels_of_numpy(dtype, iris, xp, dispatch):
    """Numbers come out in the namespace of X; texts, which it cannot hold, as they are."""
    X, y = iris[0], (iris[1] > 0).astype("U1" if dtype is object else dtype).astype(dtype)
    model = ShareBoostClassifier(2).fit(xp.asarray(X), y)
    assert isinstance(model.classes_, np.ndarray)
    found = model.predict(xp.asarray(X))
    assert isinstance(found, np.ndarray if dtype in (object, "U1") else kind(xp))
    assert_array_equal(to_numpy(found), ShareBoostClassifier(2).fit(X, y).predict(X))
    assert model.score(xp.asarray(X), y) == pytest.approx(1.0)
    assert_array_equal(to_numpy(model.predictor()(xp.asarray(X))), to_numpy(found))


def test_labels_follow_y(iris, xp, dispatch):
    X, y = iris
    model = ShareBoostClassifier(2).fit(X, xp.asarray(y))
    assert type(model.classes_) is kind(xp)
    assert isinstance(model.coef_, np.ndarray)
    assert isinstance(model.predict(X), np.ndarray)
    assert_array_equal(model.predict(X), ShareBoostClassifier(2).fit(X, y).predict(X))


def test_one_class_is_an_error(iris, xp, dispatch):
    with pytest.raises(ValueError, match="at least 2 classes"):
        ShareBoostClassifier().fit(xp.asarray(iris[0]), xp.zeros(150))


def test_no_features(xp, dispatch):
    X = np.ones((6, 2))
    with pytest.warns(FewerFeaturesWarning):
        model = ShareBoostClassifier(1).fit(xp.asarray(X), xp.asarray([0, 1, 1, 0, 1, 1]))
    assert_array_equal(to_numpy(model.predict(xp.asarray(X))), np.ones(6))
    assert_array_equal(to_numpy(model.predictor()(xp.asarray(X))), np.ones(6))


@pytest.mark.parametrize("wrong", ["negative", "short", "zero"])
def test_wrong_weights(wrong, iris, xp, dispatch):
    weight = {"negative": -np.ones(150), "short": np.ones(3), "zero": np.zeros(150)}[wrong]
    with pytest.raises(ValueError, match="sample_weight"):
        ShareBoostClassifier(2).fit(xp.asarray(iris[0]), iris[1], sample_weight=xp.asarray(weight))


def test_huge_targets_of_no_weight_do_not_matter(iris, xp, dispatch):
    X, y = iris[0], iris[0][:, 0].copy()
    y[:2], weight = [1.7e308, -1.7e308], np.ones(150)
    weight[:2] = 0.0
    model = ShareBoostRegressor(1).fit(xp.asarray(X), xp.asarray(y), sample_weight=weight)
    assert to_numpy(model.coef_)[0] == pytest.approx(1.0, abs=1e-3)


def test_tensors_that_ask_for_gradients(iris, dispatch):
    torch = pytest.importorskip("torch")
    X = torch.asarray(iris[0]).requires_grad_()
    model = ShareBoostClassifier(2).fit(X, torch.asarray(iris[1]))
    assert not model.coef_.requires_grad
    assert not model.predict_proba(X).requires_grad
    assert not model.transform(X).requires_grad


def test_views_that_are_not_contiguous(iris, xp, dispatch):
    X = xp.asarray(np.repeat(iris[0], 2, axis=1))[::2, ::2]
    here = ShareBoostClassifier(2, options=FINE).fit(iris[0][::2], iris[1][::2])
    there = ShareBoostClassifier(2, options=FINE).fit(X, iris[1][::-1][::2][::-1])
    assert there.n_features_in_ == here.n_features_in_ == 4
    readonly = iris[1][::2].copy()
    readonly.flags.writeable = False
    assert_allclose(to_numpy(there.fit(X, readonly).coef_), here.coef_, **CLOSE)


# --- across namespaces


@pytest.mark.parametrize("model", BOTH, ids=lambda model: type(model).__name__)
def test_weights_go_to_where_new_data_is(model, there, iris, xp, dispatch):
    X, y = iris[0], targets(model, iris)
    here = clone(model).fit(X, y)
    assert isinstance(there.predict(X), np.ndarray)
    assert type(here.predict(xp.asarray(X))) is kind(xp)
    assert_allclose(there.predict(X), here.predict(X), **CLOSE)
    assert_allclose(to_numpy(here.predict(xp.asarray(X))), here.predict(X), **CLOSE)
    assert all(isinstance(step.weights, np.ndarray) for step in there.model_.path.rounds)
    with sklearn.config_context(array_api_dispatch=False):
        assert_allclose(there.predict(X), here.predict(X), **CLOSE)


@pytest.mark.parametrize("model", BOTH, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("way", ["out", "in", "within"])
def test_warm_start(model, way, iris, xp, dispatch):
    X, y = iris[0], targets(model, iris)
    spaces = {"out": (np, xp), "in": (xp, np), "within": (xp, xp)}[way]
    begun = clone(model).set_params(warm_start=True, n_features_to_select=1)
    begun.fit(spaces[0].asarray(X), spaces[0].asarray(y))
    begun.n_features_to_select = 2
    begun.fit(spaces[1].asarray(X), spaces[1].asarray(y))
    here = clone(model).set_params(warm_start=True, n_features_to_select=1).fit(X, y)
    here.set_params(n_features_to_select=2).fit(X, y)
    assert type(begun.coef_) is type(spaces[1].asarray([0.0]))
    assert_array_equal(to_numpy(begun.selected_), here.selected_)
    assert_allclose(to_numpy(begun.coef_), here.coef_, **CLOSE)
    assert_allclose(to_numpy(begun.intercept_), here.intercept_, **CLOSE)


def test_warm_start_with_other_classes(iris, xp, dispatch):
    X, y = iris
    model = ShareBoostClassifier(1, warm_start=True).fit(xp.asarray(X), xp.asarray(y))
    with pytest.raises(ValueError, match="other classes"):
        model.fit(X, y + 1)


@pytest.mark.parametrize("model", BOTH, ids=lambda model: type(model).__name__)
def test_truncate_and_copies(model, there, iris, xp, dispatch):
    X = iris[0]
    smaller, same = there.truncate(1), copy.copy(there)
    assert type(smaller.coef_) is type(same.coef_) is kind(xp)
    assert smaller.selected_.shape == (1,)
    wanted = next(there.staged_predict(xp.asarray(X)))
    assert_allclose(to_numpy(smaller.predict(xp.asarray(X))), to_numpy(wanted), **CLOSE)


@pytest.mark.parametrize("model", BOTH, ids=lambda model: type(model).__name__)
def test_pickles_hold_numpy_arrays_alone(model, there, iris, xp, dispatch):
    X = iris[0]
    written = pickle.dumps(there)
    assert b"torch" not in written
    assert b"array_api_strict" not in written
    again = pickle.loads(written)
    assert not any(is_foreign(value) for value in vars(again).values())
    assert_allclose(again.coef_, to_numpy(there.coef_), rtol=0)
    assert_allclose(again.predict(X), to_numpy(there.predict(xp.asarray(X))), **CLOSE)
    assert type(again.predict(xp.asarray(X))) is kind(xp)


@pytest.mark.parametrize("model", BOTH, ids=lambda model: type(model).__name__)
def test_model_files(model, iris, xp, dispatch, tmp_path):
    X, y = iris[0], targets(model, iris)
    there = clone(model).set_params(warm_start=True).fit(xp.asarray(X), xp.asarray(y))
    save(there, tmp_path / "model")
    again = load(tmp_path / "model")
    assert isinstance(again.coef_, np.ndarray)
    assert_allclose(again.coef_, to_numpy(there.coef_), **CLOSE)
    assert_allclose(to_numpy(again.predict(xp.asarray(X))), again.predict(X), **CLOSE)
    assert type(again.fit(xp.asarray(X), xp.asarray(y)).coef_) is kind(xp)


@pytest.mark.parametrize("model", BOTH, ids=lambda model: type(model).__name__)
def test_predictor(model, there, iris, xp, dispatch):
    X = iris[0]
    predict = pickle.loads(pickle.dumps(there.predictor()))
    with sklearn.config_context(array_api_dispatch=False):  # which it does not ask for
        found = predict(xp.asarray(X))
        one = predict(xp.asarray(X[3]))
    assert type(found) is type(one) is kind(xp)
    assert_allclose(to_numpy(found), there.predict(X), **CLOSE)
    assert_allclose(to_numpy(one), there.predict(X[3:4])[0], **CLOSE)
    assert_allclose(predict(X), there.predict(X), **CLOSE)


@pytest.mark.parametrize(("regression", "scoring"), [(False, "other"), (True, None)])
def test_cross_validation(regression, scoring, iris, xp, dispatch):
    X, y = (iris[0], iris[0][:, :2] ** 2) if regression else iris
    kinds = (ShareBoostRegressorCV, "neg_mean_squared_error"), (ShareBoostClassifierCV, "accuracy")
    make, other = kinds[0 if regression else 1]
    model = make(2, cv=2, options=FINE, scoring=scoring and other)
    weight = np.linspace(1.0, 2.0, 150)
    here = clone(model).fit(X, y, sample_weight=weight)
    there = clone(model).fit(xp.asarray(X), xp.asarray(y), sample_weight=xp.asarray(weight))
    assert there.n_features_to_select_ == here.n_features_to_select_
    assert there.best_score_ == pytest.approx(here.best_score_, abs=1e-6)
    assert type(there.coef_) is kind(xp)
    assert_allclose(to_numpy(there.coef_), here.coef_, **CLOSE)


# --- without the switch, and what is not taken


@pytest.mark.parametrize(
    "model",
    [*BOTH, ShareBoostClassifierCV(2, cv=2), OneVsRestGreedy(2), JointBoostClassifier(n_rounds=5)],
    ids=lambda model: type(model).__name__,
)
def test_without_the_switch_all_become_numpy_arrays(model, iris, xp):
    X, y = iris
    here = clone(model).fit(X, y)
    there = clone(model).fit(xp.asarray(X), xp.asarray(y))
    assert not any(is_foreign(value) for value in vars(there).values())
    assert isinstance(there.predict(xp.asarray(X)), np.ndarray)
    assert_array_equal(there.predict(xp.asarray(X)), here.predict(X))
    assert isinstance(there.inverse_transform(there.transform(xp.asarray(X))), np.ndarray)


@pytest.mark.parametrize("which", ["X", "y"])
def test_another_device_without_the_switch(which, iris):
    """The device "meta" stands for one that the tests do not have."""
    torch = pytest.importorskip("torch")
    X, y = torch.asarray(iris[0]), torch.asarray(iris[1])
    X, y = (X.to("meta"), y) if which == "X" else (X, y.to("meta"))
    for model in BOTH:
        with pytest.raises(TypeError, match=f"{which} is an array on the device meta.*dispatch"):
            clone(model).fit(X, y)
    model = ShareBoostClassifier(2).fit(*iris)
    with pytest.raises(TypeError, match="array_api_dispatch"):
        model.predict(torch.asarray(iris[0]).to("meta"))


@pytest.mark.parametrize("pool", [Stumps(), Products()], ids=repr)
def test_pools_of_numpy_alone(pool, iris, xp, dispatch):
    X, y = iris
    name = type(pool).__name__
    with pytest.raises(TypeError, match=f"{name} takes NumPy arrays.*numpy.asarray"):
        ShareBoostClassifier(2, pool=pool).fit(xp.asarray(X), xp.asarray(y))
    model = ShareBoostClassifier(2, pool=pool).fit(X, xp.asarray(y))
    with pytest.raises(TypeError, match=f"{name} takes NumPy arrays.*numpy.asarray"):
        model.predict(xp.asarray(X))
    assert_array_equal(model.predict(X), ShareBoostClassifier(2, pool=pool).fit(X, y).predict(X))


def test_one_vs_rest_takes_numpy_alone(iris, xp, dispatch):
    with pytest.raises(TypeError, match="OneVsRestGreedy takes NumPy arrays"):
        OneVsRestGreedy(2).fit(xp.asarray(iris[0]), iris[1])


# --- images


@dataclass
class Templates(Pool):
    """Products with the first images of the training data, learned in ``prepare``."""

    count: int = 12
    shape: tuple[int, int] | None = None
    templates: np.ndarray | None = None

    takes_images: ClassVar[bool] = True
    array_api: ClassVar[bool] = True

    @property
    def learned(self):
        return self.templates is not None

    def for_images(self, shape):
        return replace(self, shape=shape)

    def prepare(self, X, **options):
        templates = to_numpy(X[: self.count, :]).astype(float)
        known = self if self.learned else replace(self, templates=templates)
        prepared = Columns().prepare(known.evaluate(X, range(self.count)), **options)
        prepared.pool = known
        return prepared

    def evaluate(self, X, atoms):
        chosen = self.templates[list(atoms)].T
        if isinstance(X, np.ndarray):
            return X @ chosen
        import array_api_compat

        xp = array_api_compat.array_namespace(X)
        return xp.astype(X, xp.float64) @ xp.asarray(np.array(chosen))

    def labels(self, atoms):
        return list(atoms)

    def n_columns(self, atom, n_features):
        return 1

    def feature_indices(self, atoms, n_features):
        return np.arange(n_features if len(atoms) else 0)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:200].reshape(-1, 8, 8)[:, :6, :], y[:200]  # a view that is not contiguous


@pytest.mark.parametrize("dtype", [float, "uint8"])
def test_images(dtype, digits):
    images, y = digits[0].astype(dtype), digits[1]
    flat = images.reshape(len(images), -1)
    model = ShareBoostClassifier(5, pool=Templates(), options=FINE).fit(images, y)
    assert model.n_features_in_ == 48
    assert model.model_.pool.shape == (6, 8)
    assert model.coef_.shape == (10, 5)
    assert model.pool.templates is None
    same = ShareBoostClassifier(5, pool=Templates(), options=FINE).fit(flat, y)
    assert_allclose(same.coef_, model.coef_, **CLOSE)
    assert_array_equal(model.predict(images), model.predict(flat))
    assert_array_equal(model.predict(images.tolist()), model.predict(flat))
    assert_array_equal(model.transform(images), model.transform(flat))
    assert_array_equal(model.predictor()(images), model.predict(flat))
    assert len(list(model.staged_predict(images))) == 5


def test_images_of_other_libraries(digits, xp, dispatch):
    images, y = digits
    here = ShareBoostClassifier(3, pool=Templates(), options=FINE).fit(images, y)
    there = ShareBoostClassifier(3, pool=Templates(), options=FINE).fit(xp.asarray(images), y)
    assert_allclose(to_numpy(there.coef_), here.coef_, **CLOSE)
    found = there.predict(xp.asarray(images))
    assert type(found) is kind(xp)
    assert_array_equal(to_numpy(found), here.predict(images))
    assert_array_equal(to_numpy(there.predictor()(xp.asarray(images))), here.predict(images))


def test_tensors_of_images_without_the_switch(digits):
    torch = pytest.importorskip("torch")
    images, y = digits
    here = ShareBoostClassifier(3, pool=Templates()).fit(images, y)
    there = ShareBoostClassifier(3, pool=Templates()).fit(torch.asarray(images), y)
    assert isinstance(there.coef_, np.ndarray)
    assert_array_equal(there.predict(torch.asarray(images)), here.predict(images))


def test_images_in_cross_validation(digits):
    images, y = digits
    model = ShareBoostClassifierCV(4, pool=Templates(), cv=3).fit(images, y)
    assert model.model_.pool.shape == (6, 8)
    assert model.predict(images).shape == (200,)


def test_images_of_another_shape(digits):
    images, y = digits
    model = ShareBoostClassifier(3, pool=Templates(), warm_start=True).fit(images, y)
    turned = np.swapaxes(images, 1, 2)
    for use in (model.predict, model.transform, lambda X: model.fit(X, y)):
        with pytest.raises(ValueError, match="8 x 6 pixels, but the model was fitted on.*6 x 8"):
            use(turned)
    with pytest.raises(ValueError, match="features"):
        model.predict(images.reshape(200, -1)[:, :40])


@pytest.mark.parametrize("foreign", [False, True])
def test_images_for_pools_of_columns(foreign, digits):
    images, y = digits
    if foreign:
        images = pytest.importorskip("torch").asarray(images)
    fitted = ShareBoostClassifier(2).fit(images.reshape(200, -1), y)
    for use in (lambda X: ShareBoostClassifier(2).fit(X, y), fitted.predict):
        with pytest.raises(ValueError, match=r"patches, not for Columns.*\(200, 48\).*Patches\(\)"):
            use(images)
    with pytest.raises(ValueError, match="Found array with dim 3"):
        fitted.predict(images.tolist())


@pytest.mark.parametrize("pool", [None, Templates()], ids=["columns", "templates"])
def test_images_in_colour(pool, digits):
    images, y = digits
    with pytest.raises(ValueError, match="4 dimensions.*grey"):
        ShareBoostClassifier(2, pool=pool).fit(images[:, :, :, None], y)


def test_a_path_goes_on_with_what_was_learned(digits):
    images, y = digits
    model = ShareBoostClassifier(2, pool=Templates(), warm_start=True).fit(images, y)
    learned = model.model_.pool
    model.set_params(n_features_to_select=4).fit(images[::-1], y[::-1])  # has other first images
    assert model.model_.pool is learned
    assert len(model.path_["loss"]) == 4
    with pytest.raises(ValueError, match="pool, loss.*has changed"):
        model.set_params(pool=Templates(count=5)).fit(images, y)


def test_learned_pools_in_model_files(digits, monkeypatch, tmp_path):
    images, y = digits
    # A model file names classes of mixnorm's own rooms alone.
    monkeypatch.setattr(Templates, "__module__", "mixnorm.pools._of_a_test")
    monkeypatch.setitem(sys.modules, "mixnorm.pools._of_a_test", sys.modules[__name__])
    monkeypatch.setattr(mixnorm.pools, "Templates", Templates, raising=False)
    monkeypatch.setattr(mixnorm.pools, "__all__", [*mixnorm.pools.__all__, "Templates"])
    model = ShareBoostClassifier(3, pool=Templates(), warm_start=True).fit(images, y)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.pool == Templates()
    assert again.model_.pool.shape == (6, 8)
    assert_array_equal(again.model_.pool.templates, model.model_.pool.templates)
    assert_array_equal(again.predict(images), model.predict(images))
    again.set_params(n_features_to_select=4).fit(images, y)
    assert len(again.path_["loss"]) == 4


def test_one_vs_rest_keeps_what_was_learned(digits):
    images, y = digits
    model = OneVsRestGreedy(2, pool=Templates()).fit(images.reshape(200, -1), y)
    assert model.predict(images.reshape(200, -1)).shape == (200,)


def test_bounds_of_a_model_elsewhere(xp):
    from mixnorm.bounds import shareboost

    X, y = load_iris(return_X_y=True)
    wanted = shareboost(ShareBoostClassifier(2, alpha=0.0).fit(X, y), X, y)
    with sklearn.config_context(array_api_dispatch=True):
        X, y = xp.asarray(X), xp.asarray(y)
        found = shareboost(ShareBoostClassifier(2, alpha=0.0).fit(X, y), X, y)
    assert found.value == pytest.approx(wanted.value, rel=1e-6)
