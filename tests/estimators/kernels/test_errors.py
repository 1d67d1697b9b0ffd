"""Bad kernels and bad parameters: what is said about them."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from mixnorm import (
    ConvMKLClassifier,
    KernelMulticlassSVC,
    LinearMulticlassSVC,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    SMSDMKLClassifier,
    UFOMKLClassifier,
)
from mixnorm.kernels import GaussianKernel, KernelBank, KernelStack, clip_negative, gaussian_bank

MODELS = [
    MKLClassifier(),
    ConvMKLClassifier(),
    UFOMKLClassifier(),
    SMSDMKLClassifier(),
    UFOMKLClassifier(solver="mirror"),
    MKLRegressor(),
    MKLClassifierCV(Cs=[1.0], ps=[1.2], cv=2),
]
each_model = pytest.mark.parametrize("model", MODELS, ids=str)


def rows(n=30):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(n, 3))
    return X, np.argmax(X, axis=1)


def kernels(n=30, n_kernels=2):
    X, _ = rows(n)
    squares = np.sum((X[:, None] - X[None]) ** 2, axis=2)
    return np.stack([np.exp(-squares / (0.5 * 4.0**m)) for m in range(n_kernels)])


def changed(K, change):
    K = K.copy()
    change(K)
    return K


def set_at(place, value):
    def change(K):
        K[place] = value

    return change


def tilted(K):
    K[1, 2, 3] += 0.1


def indefinite(K):
    K[1] -= 0.5 * np.eye(K.shape[1]) * np.linalg.eigvalsh(K[1])[-1] / 5.0


BAD = {
    "not square": (lambda K: K[:, :, :20], "the kernels have 30 rows and 20 columns.*square"),
    "sizes": (lambda K: [K[0], K[1][:20, :20]], r"kernel 1 has shape \(20, 20\), but kernel 0"),
    "NaN": (
        lambda K: changed(K, set_at((1, 4, 5), np.nan)),
        "kernel 1 has nan in row 4, column 5; all entries must be finite",
    ),
    "infinity": (lambda K: changed(K, set_at((0, 4, 4), np.inf)), "kernel 0 has inf in row 4"),
    "not symmetric": (
        lambda K: changed(K, tilted),
        r"kernel 1 is not symmetric: an entry and its mirror image differ by 0.1.*\(K \+ K.T\) / 2",
    ),
    "indefinite": (
        lambda K: changed(K, indefinite),
        "kernel 1 is not positive semi-definite.*Repair it with mixnorm.kernels.clip_negative",
    ),
    "negative": (lambda K: -K, "kernel 0 is not positive semi-definite.*clip_negative"),
    "four axes": (lambda K: K[None], "K has 4 axes; give an array of shape"),
    "one axis": (lambda K: K[0, 0], "K has 1 axes"),
    "none": (lambda K: [], "K holds no kernels; give at least one matrix"),
    "no rows": (lambda K: K[:, :0, :0], r"inconsistent numbers of samples: \[0, 30\]"),
    "other rows": (lambda K: K[:, :29, :29], "inconsistent numbers of samples"),
}


@pytest.mark.parametrize("case", BAD)
@each_model
def test_bad_kernels(model, case):
    bad, said = BAD[case]
    _, y = rows()
    with pytest.raises(ValueError, match=said):
        clone(model).set_params(kernel="precomputed").fit(bad(kernels()), y)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (sp.csr_array(np.eye(30)), "K must be an array or a list of matrices, got csr_array"),
        ([sp.csr_array(np.eye(30))], "kernel 0 is a sparse matrix.*toarray"),
        (1j * np.ones((1, 30, 30)), "kernel 0 has dtype complex128; kernel matrices hold real"),
        (np.full((1, 30, 30), "a"), "kernel matrices hold real numbers"),
        ("kernels", "K must be an array or a list of matrices, got str"),
        (None, "K must be an array or a list of matrices, got NoneType"),
    ],
    ids=range(6),
)
@each_model
def test_what_is_no_kernel_matrix(model, bad, said):
    _, y = rows()
    with pytest.raises(TypeError, match=said):
        clone(model).set_params(kernel="precomputed").fit(bad, y)


def test_repaired_kernels_are_taken():
    _, y = rows()
    K = changed(kernels(), indefinite)
    repaired = np.stack([clip_negative(matrix) for matrix in K])
    assert MKLClassifier(kernel="precomputed").fit(repaired, y).score(repaired, y) > 0.5


@each_model
def test_bad_kernels_of_new_rows(model):
    _, y = rows()
    model = clone(model).set_params(kernel="precomputed").fit(kernels(), y)
    K = kernels()
    assert model.predict(K[:, :5]).shape == (5,)
    assert model.predict(KernelStack(K[:, :5])).shape == (5,)
    shape = r"fitted on 2 kernels of 30 training rows; give an array of shape \(2, n_new, 30\)"
    with pytest.raises(ValueError, match=rf"X holds 3 kernels of shape \(5, 30\).*{shape}"):
        model.predict(kernels(n_kernels=3)[:, :5])
    with pytest.raises(ValueError, match=rf"X holds 1 kernels.*{shape}"):
        model.predict(K[0])
    with pytest.raises(ValueError, match=rf"X holds 2 kernels of shape \(30, 5\).*{shape}"):
        model.predict(K[:, :, :5])
    with pytest.raises(ValueError, match="kernel 1 has nan in row 0, column 3"):
        model.predict(changed(K, set_at((1, 0, 3), np.nan)))


@each_model
def test_rows_in_place_of_kernels(model):
    """The most likely mistake: a table of rows as the one matrix of a stack."""
    X, y = rows()
    with pytest.raises(ValueError, match="30 rows and 3 columns; kernels to learn from must be sq"):
        clone(model).set_params(kernel="precomputed").fit(X, y)


@pytest.mark.parametrize("model", [*MODELS, KernelMulticlassSVC(), LinearMulticlassSVC()], ids=str)
def test_bad_rows(model):
    X, y = rows()
    with pytest.raises(NotFittedError):
        clone(model).predict(X)
    fitted = clone(model).fit(X, y)
    with pytest.raises(ValueError, match="X has 2 features, but .* is expecting 3 features"):
        fitted.predict(X[:, :2])
    with pytest.raises(ValueError, match="NaN"):
        fitted.predict(np.where(X > 0.9, np.nan, X))
    with pytest.raises(ValueError, match="NaN"):
        clone(model).fit(np.where(X > 0.9, np.nan, X), y)
    with pytest.raises(ValueError, match="Expected 2D array"):
        clone(model).fit(X[:, 0], y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        clone(model).fit(X, y[:-1])
    with pytest.raises(ValueError, match=r"sample_weight.shape == \(29,\), expected \(30,\)"):
        clone(model).fit(X, y, sample_weight=np.ones(29))
    with pytest.raises(ValueError, match="sample_weight has negative entries"):
        clone(model).fit(X, y, sample_weight=-np.ones(30))


# --- parameters


SHARED = [
    ({"bank": ["linear"]}, TypeError, "not a KernelBank; make one with mixnorm.kernels.KernelBank"),
    ({"bank": GaussianKernel()}, TypeError, "is not a KernelBank"),
    ({"bank": KernelBank}, TypeError, "is not a KernelBank"),
    ({"kernel": "rbf"}, ValueError, "kernel='rbf' is not known; 'bank' computes the kernels"),
    ({"kernel": None}, ValueError, "kernel=None is not known"),
    ({"kernel": np.eye(2)}, ValueError, "is not known; 'bank' computes"),
    ({"C": 0.0}, ValueError, "C=0.0 must be positive and finite: it is the weight of the losses"),
    ({"C": -1.0}, ValueError, "C=-1.0 must be positive and finite"),
    ({"C": np.inf}, ValueError, "C=inf must be positive and finite"),
    ({"C": np.nan}, ValueError, "C=nan must be positive and finite"),
    ({"C": "1"}, TypeError, "C='1' must be a number"),
    ({"C": True}, TypeError, "C=True must be a number"),
    ({"tol": -1e-3}, ValueError, "tol=-0.001 must be at least 0"),
    ({"tol": None}, TypeError, "tol=None must be a number"),
    ({"max_iter": 0}, ValueError, "max_iter=0 must be at least 1"),
    ({"max_iter": 10.0}, TypeError, "max_iter=10.0 must be a whole number"),
    ({"warm_start": 1}, TypeError, "warm_start=1 must be True or False"),
]
OF_P = [
    ({"p": 0.9}, ValueError, "p=0.9 must be at least 1: 1 for few kernels, 2 for many"),
    ({"p": np.nan}, ValueError, "p=nan must be at least 1"),
    ({"p": "2"}, TypeError, "p='2' must be a number: 1 for few kernels"),
    ({"p": None}, TypeError, "p=None must be a number"),
    ({"p": True}, TypeError, "p=True must be a number"),
]
OF_CLASSES = [
    ({"class_weight": "even"}, ValueError, "class_weight='even' must be None, 'balanced', or"),
    ({"class_weight": [1.0]}, TypeError, r"class_weight=\[1.0\] must be None"),
    ({"class_weight": {0: -1.0}}, ValueError, "class_weight has -1.0 for 0"),
    ({"class_weight": {"z": 2.0}}, ValueError, "class_weight=.*Its keys are labels of y"),
]
OF_LOSS = [
    ({"loss": "log"}, ValueError, r"loss='log' is not known; choose one of \['hinge'"),
    ({"loss": 2}, ValueError, "loss=2 is not known"),
]
OF_TAIL = [
    ({"tail": -1}, ValueError, "tail=-1 must be at least 0"),
    ({"tail": 2.0}, TypeError, "tail=2.0 must be a whole number"),
]
OF_FLOOR = [
    ({"floor": 0.0}, ValueError, "floor=0.0 must be positive and finite: .* 0.01 is a good start"),
    ({"floor": -1.0}, ValueError, "floor=-1.0 must be positive"),
    ({"floor": "low"}, TypeError, "floor='low' must be a number"),
]
OF_BLOCKS = [
    ({"beta": -1.0}, ValueError, "beta=-1.0 must be at least 0"),
    ({"beta": "a"}, TypeError, "beta='a' must be a number"),
    ({"q": 1.9}, ValueError, "q=1.9 must be at least 2, None or 'classes': below that the penalty"),
    ({"q": "kernels"}, ValueError, "q='kernels' must be a number, None or 'classes'"),
    ({"q": True}, TypeError, "q=True must be a number"),
    ({"q": np.nan}, ValueError, "q=nan must be at least 2"),
    ({"solver": "sgd"}, ValueError, r"solver='sgd' is not known; choose one of \['exact', 'mirror"),
    ({"solver": None}, ValueError, "solver=None is not known"),
    ({"epochs": 0}, ValueError, "epochs=0 must be at least 1"),
    ({"epochs": 1.5}, TypeError, "epochs=1.5 must be a whole number"),
    ({"random_state": "a"}, ValueError, "random_state='a' is not a seed"),
]
CASES = [
    *((MKLClassifier, *case) for case in [*SHARED, *OF_P, *OF_CLASSES, *OF_LOSS]),
    *((ConvMKLClassifier, *case) for case in [*SHARED, *OF_P, *OF_CLASSES, *OF_LOSS]),
    *((ConvMKLClassifier, *case) for case in [*OF_TAIL, *OF_FLOOR]),
    *((UFOMKLClassifier, *case) for case in [*SHARED, *OF_CLASSES, *OF_BLOCKS]),
    *((SMSDMKLClassifier, *case) for case in [*SHARED, *OF_CLASSES, *OF_BLOCKS, *OF_TAIL]),
    *((MKLRegressor, *case) for case in [*SHARED, *OF_P]),
]


def name_of(case):
    cls, params, *_ = case
    return f"{cls.__name__}-{str(params)[:40]}"


@pytest.mark.parametrize(("cls", "params", "error", "said"), CASES, ids=map(name_of, CASES))
def test_wrong_parameters(cls, params, error, said):
    X, y = rows()
    model = cls(**params)  # nothing is checked before fit
    with pytest.raises(error, match=said):
        model.fit(X, y)
    assert not hasattr(model, "kernel_weights_")


def test_an_infinite_dual_exponent():
    """That is p = 1 of MKLClassifier; lambda is 1 / (n C)."""
    X, y = rows()
    bank, tight = gaussian_bank([0.5, 1.0], dtype="float64"), {"tol": 1e-6, "max_iter": 1000}
    blocks = UFOMKLClassifier(bank, q=np.inf, beta=0.0, **tight).fit(X, y)
    plain = MKLClassifier(bank, p=1.0, **tight).fit(X, y)
    assert blocks.objective_ * 30 * 10.0 == pytest.approx(plain.objective_, rel=1e-5)


def test_an_infinite_dual_exponent_in_mirror_descent():
    X, y = rows()
    model = UFOMKLClassifier(gaussian_bank([0.5, 1.0]), q=np.inf, solver="mirror", random_state=0)
    assert np.isfinite(model.fit(X, y).objective_)


@pytest.mark.parametrize(
    ("bank", "error", "said"),
    [
        (KernelBank([]), ValueError, "kernel"),
        (KernelBank(["magic"]), ValueError, "kernel 'magic' is not known"),
        (KernelBank(["linear"], columns=[[9]]), ValueError, "9"),
        (KernelBank(["linear"], dtype="int8"), ValueError, "dtype='int8' is not offered"),
        (KernelBank([lambda X, Y: -np.ones((len(X), len(Y)))]), ValueError, "not positive"),
        (KernelBank([lambda X, Y: np.ones(3)]), ValueError, "returned shape"),
    ],
    ids=range(6),
)
def test_wrong_banks(bank, error, said):
    X, y = rows()
    with pytest.raises(error, match=said):
        MKLClassifier(bank).fit(X, y)


def test_numpy_numbers_are_numbers():
    X, y = rows()
    plain = {"C": 2.0, "tol": 0.01, "max_iter": 50}
    scalars = {"C": np.float32(2.0), "tol": np.float64(0.01), "max_iter": np.int64(50)}
    for expected, found in (
        (
            MKLClassifier(p=2, warm_start=False, **plain),
            MKLClassifier(p=np.int64(2), warm_start=np.bool_(False), **scalars),
        ),
        (
            SMSDMKLClassifier(tail=3, q=4.0, beta=0.0, **plain),
            SMSDMKLClassifier(tail=np.int32(3), q=np.float32(4.0), beta=0, **scalars),
        ),
    ):
        scores = expected.fit(X, y).decision_function(X)
        np.testing.assert_array_equal(found.fit(X, y).decision_function(X), scores)


@each_model
@pytest.mark.parametrize("weight", [1e-310, 1e-100, 1e100, 1e200])
def test_weights_at_the_ends_of_floats(model, weight):
    X, y = rows()
    message = "sample_weight is .*e[+-].* must lie between 1e-30 and 1e.30.*divide it by its mean"
    with pytest.raises(ValueError, match=message):
        clone(model).fit(X, y, sample_weight=np.full(len(X), weight))


@pytest.mark.parametrize("cost", [1e-300, 1e300])
def test_a_cost_at_the_ends_of_floats(cost):
    X, y = rows()
    with pytest.raises(ValueError, match=r"C times the weight of a row is .*change C"):
        MKLClassifier(C=cost).fit(X, y, sample_weight=np.full(len(X), 1e10))
