"""Bad input, extreme data, files and interruptions of learners with tensor kernels."""

import math
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mixnorm
from mixnorm import (
    TensorKernelClassifier,
    TensorKernelClassifierCV,
    TensorKernelRegressor,
    TensorKernelRegressorCV,
)
from mixnorm.exceptions import (
    CoarseKernelWarning,
    InterruptedFitWarning,
    ModelFileError,
    NotConvergedWarning,
)
from mixnorm.kernels import (
    ExponentialTensorKernel,
    FeatureTensorKernel,
    PolynomialTensorKernel,
    PowerSeriesTensorKernel,
    TensorKernel,
)
from mixnorm.losses import EpsilonInsensitive, Huber, MulticlassHinge

from .conftest import Unlisted, table

# --- bad input


@pytest.mark.parametrize(
    ("params", "error", "words"),
    [
        ({"kernel": "poly"}, TypeError, "not a TensorKernel; give a tensor kernel"),
        ({"kernel": PolynomialTensorKernel}, TypeError, "not a TensorKernel"),
        ({"kernel": PolynomialTensorKernel(0)}, ValueError, "degree=0"),
        ({"gamma": 0.0}, ValueError, "gamma=0.0 must be positive"),
        ({"gamma": "auto"}, TypeError, "gamma='auto'"),
        ({"gamma": math.inf}, ValueError, "gamma=inf"),
        ({"q": 2}, ValueError, "q=2 must be above 2 and at most 100"),
        ({"q": "four"}, TypeError, "q='four'"),
        ({"q": 1e3}, ValueError, "at most 100"),
        ({"q": 20, "representation": "tensor"}, ValueError, "even q up to 8"),
        ({"loss": EpsilonInsensitive(math.nan)}, ValueError, "epsilon=nan"),
        ({"loss": Huber(-1)}, ValueError, "delta=-1 must"),
        ({"loss": "log"}, ValueError, "loss='log' is not known"),
        ({"loss": "hinge"}, ValueError, "loss='hinge' is not known"),
        ({"loss": MulticlassHinge()}, ValueError, "all scores"),
        ({"standardize": "yes"}, TypeError, "standardize='yes'"),
        ({"fit_intercept": 1.0}, TypeError, "fit_intercept=1.0"),
        ({"representation": "dense"}, ValueError, "representation='dense' is not known"),
        ({"representation": "tensor", "q": 5}, ValueError, "even q"),
        ({"n_components": 0}, ValueError, "n_components=0"),
        ({"solver": "lbfgs"}, ValueError, "solver='lbfgs'"),
        ({"solver": "gradient", "loss": "huber"}, ValueError, "forward-backward"),
        ({"tol": -1.0}, ValueError, "tol=-1.0"),
        ({"max_iter": 0}, ValueError, "max_iter=0"),
        ({"random_state": "x"}, ValueError, "is not a seed"),
    ],
)
def test_bad_parameters(params, error, words):
    X, y = table()
    with pytest.raises(error, match=words):
        TensorKernelRegressor(**params).fit(X, y)


class Plain(TensorKernel):
    """No dataclass."""

    def of_products(self, P, shift=0.0):
        return P


@dataclass
class Negative(TensorKernel):
    """No tensor kernel, having a negative coefficient."""

    def of_products(self, P, shift=0.0):
        return 1.0 - P

    def degrees(self):
        return [(0, 1.0), (1, -1.0)]


def test_bad_kernels():
    X, y = table()
    with pytest.raises(TypeError, match="@dataclass"):
        TensorKernelRegressor(Plain()).fit(X, y)
    with pytest.raises(ValueError, match="coefficient -1.0"):
        TensorKernelRegressor(Negative()).fit(X, y)
    with pytest.raises(ValueError, match="must be drawn, which the kernel cannot do"):
        TensorKernelRegressor(Unlisted(), q=6).fit(*table(60))
    with pytest.raises(ValueError, match="lower sigma or q"):
        TensorKernelRegressor(ExponentialTensorKernel(), q=40).fit(X, y)
    with pytest.raises(ValueError, match="standardize=True"):
        TensorKernelRegressor(PowerSeriesTensorKernel(), standardize=False).fit(1e150 * X, y)
    with pytest.raises(ValueError, match="low-rank"):
        TensorKernelRegressor(representation="low-rank", n_components=10**6).fit(
            np.random.default_rng(0).standard_normal((3000, 2)), np.zeros(3000)
        )


@pytest.mark.parametrize("seed", range(4))
def test_targets_that_no_feature_sees(seed):
    """All that is left of them is rounding, which must not become the unit of gamma."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((30, 4)), rng.standard_normal(30)
    for kernel, rows in (
        (PolynomialTensorKernel(2), 1e-150 * X),
        (PolynomialTensorKernel(2), np.ones((30, 3))),
        (PowerSeriesTensorKernel([1.0]), X),
    ):
        for representation in ("features", "tensor"):
            model = TensorKernelRegressor(
                kernel, standardize=False, representation=representation
            ).fit(rows, y)
            np.testing.assert_allclose(model.predict(rows), y.mean(), atol=1e-6)
    twice, sides = np.concatenate([X, X]), np.repeat([0, 1], 30)
    for loss in ("logistic", "hinge"):
        both = TensorKernelClassifier(PolynomialTensorKernel(3), loss=loss).fit(twice, sides)
        np.testing.assert_allclose(both.decision_function(twice), 0.0, atol=1e-6)


def test_little_of_the_kernel():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 200))
    with pytest.warns(CoarseKernelWarning, match="Raise n_components"):
        TensorKernelRegressor(
            PolynomialTensorKernel(3), representation="sampled", n_components=50, random_state=0
        ).fit(X, X[:, 0])


@pytest.mark.parametrize("size", [1e-150, 1e150])
def test_sizes_of_weights(size):
    X, y = table()
    one = TensorKernelRegressor().fit(X, y)
    other = TensorKernelRegressor().fit(X, y, sample_weight=np.full(40, size))
    np.testing.assert_allclose(other.predict(X), one.predict(X), rtol=1e-9)
    assert other.gamma_raw_ * size == pytest.approx(one.gamma_raw_)


def test_rows_out_of_range():
    X, y = table()
    model = TensorKernelRegressor(PolynomialTensorKernel(3)).fit(X, y)
    with pytest.raises(ValueError, match="Row 1 of X is so far"):
        model.predict(np.array([X[0], np.full(4, 1e200)]))


def test_parameters_after_a_fit():
    X, y = table()
    model = TensorKernelRegressor().fit(X, y)
    before = model.features(3)
    assert model.set_params(q=8).features(3) == before


def test_losses_of_the_other_kind():
    X, y = table()
    with pytest.raises(ValueError, match="TensorKernelClassifier"):
        TensorKernelRegressor(loss=mixnorm.losses.Hinge()).fit(X, y)
    with pytest.raises(ValueError, match="TensorKernelRegressor"):
        TensorKernelClassifier(loss=mixnorm.losses.Squared()).fit(X, y > 7)


def test_one_class():
    X, _ = table()
    with pytest.raises(ValueError, match="only one class"):
        TensorKernelClassifier().fit(X, np.zeros(40))


@pytest.mark.filterwarnings("ignore::mixnorm.exceptions.NotConvergedWarning")
@pytest.mark.parametrize("gamma", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("model", [TensorKernelRegressor(), TensorKernelClassifier()])
@pytest.mark.parametrize("case", ["two", "same", "constant", "wide", "duplicates", "zeros"])
def test_extreme_data(model, gamma, case):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((12, 3)), np.arange(12) % 2
    X, y = {
        "two": (X[:2], y[:2]),
        "same": (np.repeat(X[:1], 12, axis=0), y),
        "constant": (np.concatenate([X, np.full((12, 2), 1e9)], axis=1), y),
        "wide": (X * [1e8, 1.0, 1e-8], y),
        "duplicates": (np.repeat(X[:4], 3, axis=0), y),
        "zeros": (np.zeros((12, 2)), y),
    }[case]
    found = clone(model).set_params(gamma=gamma).fit(X, y)
    assert np.all(np.isfinite(found.predict(X)))
    assert 0.0 <= found.dual_gap_ <= found.objective_
    if case in ("same", "zeros") and not is_classifier(model):
        np.testing.assert_allclose(found.predict(X), 0.5, atol=1e-6)


def test_constant_targets():
    X, _ = table()
    model = TensorKernelRegressor().fit(X, np.full(40, 46.9))
    np.testing.assert_allclose(model.predict(X), 46.9, rtol=1e-12)


def test_not_converged():
    X, y = table()
    with pytest.warns(NotConvergedWarning, match="Raise max_iter or tol"):
        TensorKernelRegressor(gamma=1e4, max_iter=2).fit(X, y)
    with pytest.warns(NotConvergedWarning, match="Rounding"):
        TensorKernelRegressor(gamma=1e3, tol=0.0).fit(X, y)


# --- habits


def test_pipelines_pickles_and_files(tmp_path):
    X, y = table(30)
    models = [
        TensorKernelRegressor(PolynomialTensorKernel(3)),
        TensorKernelRegressor(ExponentialTensorKernel(), representation="tensor"),
        TensorKernelRegressor(ExponentialTensorKernel(), representation="sampled", random_state=0),
        TensorKernelRegressor(ExponentialTensorKernel(), representation="low-rank"),
        TensorKernelClassifier(PowerSeriesTensorKernel(np.array([1.0, 1.0]))),
        TensorKernelRegressorCV(gammas=5, cv=3),
        TensorKernelClassifierCV(gammas=[1.0, 10.0], cv=3),
    ]
    for place, model in enumerate(models):
        target = np.digitize(y, [6.0, 8.0]) if is_classifier(model) else y
        model.fit(X, target)
        mixnorm.save(model, tmp_path / f"{place}.mixnorm")
        for other in (
            pickle.loads(pickle.dumps(model)),
            mixnorm.load(tmp_path / f"{place}.mixnorm"),
        ):
            np.testing.assert_array_equal(other.predict(X), model.predict(X))
            names = [[feature.name for feature in one.features(3)] for one in (model, other)]
            assert names[0] == names[1]
    pipe = make_pipeline(StandardScaler(), TensorKernelRegressor(standardize=False)).fit(X, y)
    np.testing.assert_allclose(pipe.predict(X), TensorKernelRegressor().fit(X, y).predict(X))


def test_a_function_cannot_be_stored(tmp_path):
    X, y = table()
    model = TensorKernelRegressor(FeatureTensorKernel(np.tanh)).fit(X, y)
    with pytest.raises(ModelFileError):
        mixnorm.save(model, tmp_path / "model.mixnorm")


def test_an_interruption(monkeypatch):
    from mixnorm.engines import dual

    X, y = table()
    model = TensorKernelRegressor(gamma=1e4).fit(X, y)
    calls = []
    matrix = dual.FeatureContraction.matrix

    def tiring(self, alpha):
        calls.append(1)
        if len(calls) > 4:
            raise KeyboardInterrupt
        return matrix(self, alpha)

    monkeypatch.setattr(dual.FeatureContraction, "matrix", tiring)
    with pytest.warns(InterruptedFitWarning, match="so far is kept"):
        model.fit(X, y)
    assert np.all(np.isfinite(model.predict(X)))
    # With several outputs there is nothing to keep but the fit before.
    calls.clear()
    model = TensorKernelRegressor(gamma=1e4)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, np.stack([y, y], axis=1))
    assert not hasattr(model, "dual_coef_")


@pytest.mark.parametrize("representation", ["tensor", "low-rank"])
def test_scores_of_a_row_do_not_depend_on_its_company(representation):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 2)), rng.standard_normal(30)
    kernel = ExponentialTensorKernel()
    model = TensorKernelRegressor(kernel, gamma=100.0, representation=representation).fit(X, y)
    rows = [model.predict(X[i : i + 1])[0] for i in range(len(X))]
    assert np.array_equal(rows, model.predict(X))


def test_kernels_that_vanish_are_refused():
    X = 1e-200 * np.arange(1.0, 13.0)[:, None]
    model = TensorKernelClassifier(
        PolynomialTensorKernel(degree=2, constant=0.0), q=2.5, standardize=False
    )
    with pytest.raises(ValueError, match="columns of X by their size"):
        model.fit(X, np.arange(12) % 2)
