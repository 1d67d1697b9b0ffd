"""Mirror descent over kernels: whole passes, and samples as they come."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import mixnorm
from mixnorm import SMSDMKLClassifier, UFOMKLClassifier
from mixnorm.engines.mirror import KernelLearner
from mixnorm.exceptions import InterruptedFitWarning, NoKernelWarning
from mixnorm.kernels import KernelBank, KernelStack, gaussian_bank

TAUS = [0.125, 0.5, 2.0, 8.0]
BANK = gaussian_bank(TAUS, dtype="float64")
MODELS = [
    UFOMKLClassifier(BANK),
    UFOMKLClassifier(BANK, beta=0.03, q=3.0),
    SMSDMKLClassifier(BANK, tail=2, C=10.0),
]
each_model = pytest.mark.parametrize("model", MODELS, ids=["UFO", "UFO of few kernels", "SMSD"])


def rows(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, 4))
    sums = 1.5 * (X[:, 0] + X[:, 1]) + 0.3 * rng.normal(size=n)
    return X, np.floor(sums).astype(int) % 3


def assert_same_model(one, other, X):
    for name in ("kernel_weights_", "dual_coef_", "support_", "classes_"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert np.array_equal(one.decision_function(X), other.decision_function(X))


# --- whole passes


@each_model
def test_passes_come_near_the_optimum(model):
    X, y = rows()
    exact = clone(model).set_params(tol=1e-7, max_iter=2000).fit(X, y)
    objectives = []
    for epochs in (1, 10, 3000):
        params = {"solver": "mirror", "epochs": epochs, "random_state": 0, "tol": 0.0}
        found = clone(model).set_params(**params).fit(X, y)
        assert found.n_iter_ == epochs
        assert found.objective_ >= exact.objective_ - exact.dual_gap_
        assert found.objective_ - found.dual_gap_ <= exact.objective_ * (1.0 + 1e-9)
        objectives.append(found.objective_)
    assert objectives[-1] <= 1.02 * exact.objective_
    assert objectives[-1] < objectives[0]


@each_model
def test_passes_end_at_the_tolerance(model):
    X, y = rows()
    model = clone(model).set_params(solver="mirror", epochs=2000, tol=0.05, random_state=0)
    model.fit(X, y)
    assert 1 < model.n_iter_ < 2000
    assert model.dual_gap_ <= 0.05 * model.objective_


def test_the_seed_decides():
    X, y = rows()
    model = UFOMKLClassifier(BANK, solver="mirror", epochs=2)
    one = clone(model).set_params(random_state=3).fit(X, y)
    other = clone(model).set_params(random_state=np.random.RandomState(3)).fit(X, y)
    assert_same_model(one, other, X)
    third = clone(model).set_params(random_state=4).fit(X, y)
    assert not np.array_equal(one.decision_function(X), third.decision_function(X))


@each_model
def test_rows_of_weight_zero_are_left_out(model):
    X, y = rows()
    weight = np.where(np.arange(60) % 5 == 0, 0.0, 1.0)
    model = clone(model).set_params(solver="mirror", random_state=0)
    weighted = clone(model).fit(X, y, sample_weight=weight)
    without = clone(model).fit(X[weight > 0.0], y[weight > 0.0])
    np.testing.assert_allclose(weighted.decision_function(X), without.decision_function(X))
    assert np.all(weight[weighted.support_] > 0.0)
    streamed = clone(model).partial_fit(X, y, sample_weight=weight)
    if not hasattr(model, "tail"):  # tail sums are those of all samples
        kept = clone(model).partial_fit(X[weight > 0.0], y[weight > 0.0])
        np.testing.assert_allclose(streamed.decision_function(X), kept.decision_function(X))
    assert np.all(weight[streamed.support_] > 0.0)


def test_balanced_classes():
    X, y = rows()
    model = UFOMKLClassifier(BANK, solver="mirror", random_state=0)
    counts = np.bincount(y)
    wanted = clone(model).fit(X, y, sample_weight=(60.0 / (3.0 * counts))[y])
    found = clone(model).set_params(class_weight="balanced").fit(X, y)
    np.testing.assert_allclose(found.decision_function(X), wanted.decision_function(X))


@pytest.mark.parametrize("kind", ["nystrom", "random"])
def test_factors_are_refused(kind):
    X, y = rows()
    bank = gaussian_bank(TAUS, factors=kind, rank=10)
    with pytest.raises(ValueError, match="solver='mirror' works on kernel matrices.*factors"):
        UFOMKLClassifier(bank, solver="mirror").fit(X, y)
    with pytest.raises(ValueError, match="partial_fit works on kernel matrices.*factors"):
        UFOMKLClassifier(bank).partial_fit(X, y)


def test_matrices_that_do_not_fit_into_memory():
    X, y = rows()
    for memory in (5000, 4 * 4 * 60 * 60 - 1):  # none of them fits, or all but one
        model = UFOMKLClassifier(gaussian_bank(TAUS, memory=memory), solver="mirror")
        for call in (model.fit, model.partial_fit):
            with pytest.raises(ValueError, match="needs all 4 kernel matrices of 60 rows in mem"):
                call(X, y)


def interrupt_at(monkeypatch, when):
    """Raise KeyboardInterrupt in place of the given pass."""
    real, calls = KernelLearner.learn, []

    def learn(self, samples, order):
        calls.append(1)
        if len(calls) == when:
            raise KeyboardInterrupt
        real(self, samples, order)

    monkeypatch.setattr(KernelLearner, "learn", learn)


def test_an_interrupt_keeps_whole_passes(monkeypatch):
    X, y = rows()
    model = UFOMKLClassifier(BANK, solver="mirror", random_state=0)
    wanted = clone(model).set_params(epochs=3).fit(X, y)
    interrupt_at(monkeypatch, 4)
    with pytest.warns(InterruptedFitWarning, match="Interrupted after 3 epochs, which are kept"):
        model.fit(X, y)
    assert_same_model(model, wanted, X)
    assert model.n_iter_ == 3


def test_an_interrupt_in_the_first_pass_is_passed_on(monkeypatch):
    X, y = rows()
    interrupt_at(monkeypatch, 1)
    with pytest.raises(KeyboardInterrupt):
        UFOMKLClassifier(BANK, solver="mirror").fit(X, y)


@pytest.mark.parametrize("cls", [UFOMKLClassifier, SMSDMKLClassifier])
def test_no_kernel_is_left(cls):
    X, y = rows()
    model = cls(BANK, beta=1e6, solver="mirror", random_state=0)
    with pytest.warns(NoKernelWarning, match="No kernel is left in the model"):
        model.fit(X, y)


# --- samples as they come


@pytest.mark.parametrize(
    "sizes", [[20] * 3, [5] * 12, [1] * 60], ids=lambda sizes: f"{len(sizes)} calls"
)
def test_how_samples_are_handed_over_does_not_matter(sizes):
    X, y = rows()
    whole = UFOMKLClassifier(BANK).partial_fit(X, y)
    parts, start = UFOMKLClassifier(BANK), 0
    for size in sizes:
        part = slice(start, start + size)
        parts.partial_fit(X[part], y[part], classes=[0, 1, 2])
        start += size
    np.testing.assert_allclose(parts.kernel_weights_, whole.kernel_weights_, rtol=1e-6)
    np.testing.assert_allclose(parts.decision_function(X), whole.decision_function(X), atol=1e-6)
    assert parts.mistakes_ == whole.mistakes_


@pytest.mark.parametrize("weighted", [False, True])
@each_model
def test_batches_are_those_of_the_engine(model, weighted):
    """Rows without dual variables are dropped on the way, which changes nothing."""
    X, y = rows()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 60) if weighted else np.ones(60)
    found = clone(model)
    squares = np.sum((X[:, None] - X[None]) ** 2, axis=2)
    K = np.stack([np.exp(-squares / (2.0 * tau)) for tau in TAUS])
    parts = [slice(0, 25), slice(25, 26), slice(26, 60)]
    learner, A = None, np.zeros((0, 3))
    for part in parts:
        found.partial_fit(X[part], y[part], classes=[2, 0, 1], sample_weight=weight[part])
        grams = KernelStack(K[:, part, part])
        if learner is None:
            tails = grams.take(weight[part] > 0).tail_sums(2, weight[part][weight[part] > 0])
            offsets = model.beta * (tails if hasattr(model, "tail") else np.ones(4))
            q = 3.0 if model.q else 2.0 * np.log(4)
            learner = KernelLearner(q, offsets, 10.0, 3)
        samples = learner.begin(grams, y[part], weight[part], growing=True)
        samples.add_past(KernelStack(K[:, part, : len(A)]), A)
        learner.learn(samples, np.arange(len(samples.labels)))
        A = np.concatenate([A, samples.A])
    np.testing.assert_allclose(found.kernel_weights_, learner.weights(), rtol=1e-6)
    assert np.array_equal(found.support_, np.flatnonzero(np.any(A != 0.0, axis=1)))
    np.testing.assert_allclose(found.dual_coef_, A[found.support_])
    scores = np.einsum("m,mij,jc->ic", learner.weights(), K, A)
    np.testing.assert_allclose(found.decision_function(X), scores, atol=1e-8)
    assert found.mistakes_ == learner.mistakes
    assert found.n_iter_ == 1


@each_model
def test_streams_learn(model):
    X = np.random.default_rng(0).normal(size=(400, 4))
    y = np.argmax(X[:, :3], axis=1)
    found = clone(model)
    for part in np.array_split(np.arange(300), 6):
        found.partial_fit(X[part], y[part], classes=[0, 1, 2])
    assert found.score(X[300:], y[300:]) > 0.75
    assert np.all(found.kernel_weights_ >= 0.0)
    assert found.cost_["support"] == len(found.support_) < 300


@each_model
def test_fit_forgets_and_so_does_partial_fit_after_fit(model):
    X, y = rows()
    wanted = clone(model).fit(X, y)
    assert_same_model(clone(model).partial_fit(X[:30], y[:30]).fit(X, y), wanted, X)
    streamed = clone(model).partial_fit(X, y)
    assert_same_model(clone(model).fit(X[:30], y[:30]).partial_fit(X, y), streamed, X)


def test_tail_sums_are_those_of_the_first_samples():
    X, y = rows()
    model = SMSDMKLClassifier(BANK, tail=2).partial_fit(X[:30], y[:30])
    wanted = BANK.fit(X[:30]).grams().tail_sums(2)
    model.partial_fit(X[30:], y[30:])
    np.testing.assert_allclose(model.tail_sums_, wanted, rtol=1e-6)


@pytest.mark.parametrize("kind", ["file", "pickle", "deepcopy"])
@each_model
def test_going_on_from_a_copy(model, kind, tmp_path):
    X, y = rows()
    one = clone(model).partial_fit(X[:25], y[:25]).partial_fit(X[25:40], y[25:40])
    if kind == "file":
        mixnorm.save(one, tmp_path / "model")
        other = mixnorm.load(tmp_path / "model")
    else:
        other = pickle.loads(pickle.dumps(one)) if kind == "pickle" else copy.deepcopy(one)
    assert_same_model(other, one, X)
    for each in (one, other):
        each.partial_fit(X[40:], y[40:])
    assert_same_model(other, one, X)
    assert other.mistakes_ == one.mistakes_


def test_sparse_and_named_columns(tmp_path):
    X, y = rows()
    X[np.abs(X) < 0.5] = 0.0
    dense = UFOMKLClassifier(BANK).partial_fit(X[:30], y[:30]).partial_fit(X[30:], y[30:])
    sparse = UFOMKLClassifier(BANK)
    for part in (slice(0, 30), slice(30, 60)):
        sparse.partial_fit(sp.csr_array(X[part]), y[part])
    np.testing.assert_allclose(
        sparse.decision_function(sp.csr_array(X)), dense.decision_function(X), atol=1e-6
    )
    table = pd.DataFrame(X, columns=list("abcd"))
    bank = KernelBank.from_columns(None, {"first": ["a", "b"], "last": ["d"]})
    named = UFOMKLClassifier(bank).partial_fit(table[:30], y[:30]).partial_fit(table[30:], y[30:])
    assert named.feature_names_in_.tolist() == list("abcd")
    mixnorm.save(named, tmp_path / "model")
    again = mixnorm.load(tmp_path / "model")
    assert np.array_equal(again.decision_function(table), named.decision_function(table))


def test_words_as_labels_and_two_classes():
    X, _ = rows()
    words = np.array(["no", "yes"])[(X[:, 0] > 0.0).astype(int)]
    model = UFOMKLClassifier(BANK).partial_fit(X[:10], ["no"] * 10, classes=["yes", "no"])
    model.partial_fit(X, words)
    assert model.classes_.tolist() == ["no", "yes"]
    scores = model.decision_function(X)
    assert scores.shape == (60,)
    assert np.array_equal(model.predict(X), np.where(scores > 0.0, "yes", "no"))


# --- errors


def test_errors_of_partial_fit():
    X, y = rows()
    with pytest.raises(NotFittedError):
        UFOMKLClassifier(BANK).predict(X)
    with pytest.raises(ValueError, match="at least 2 classes; give all labels"):
        UFOMKLClassifier(BANK).partial_fit(X, np.zeros(60))
    with pytest.raises(TypeError, match="kernel='precomputed' gives no rows; set"):
        UFOMKLClassifier(kernel="precomputed").partial_fit(np.stack([X @ X.T]), y)
    with pytest.raises(ValueError, match="y has the label .*3.* not among classes"):
        UFOMKLClassifier(BANK).partial_fit(X, y + 1, classes=[0, 1, 2])
    model = UFOMKLClassifier(BANK).partial_fit(X, y)
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="y has the label .*7.*give all labels in the first call"):
        model.partial_fit(X[:2], [0, 7])
    with pytest.raises(ValueError, match=r"differs from classes of the first call"):
        model.partial_fit(X, y, classes=[0, 1, 2, 3])
    with pytest.raises(ValueError, match="5 features, but UFOMKLClassifier is expecting 4"):
        model.partial_fit(np.ones((2, 5)), [0, 1])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.partial_fit(X, y[:-1])
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.full((2, 4), np.nan), [0, 1])
    with pytest.raises(ValueError, match="sample_weight has negative entries"):
        model.partial_fit(X[:2], [0, 1], sample_weight=[1.0, -1.0])
    with pytest.raises(TypeError, match="several types"):
        model.partial_fit(X[:2], [0, "a"])
    assert np.array_equal(model.decision_function(X), before)
    other = UFOMKLClassifier(BANK).partial_fit(X, y)
    assert_same_model(model.partial_fit(X, y), other.partial_fit(X, y), X)


def test_a_call_that_fails_late_changes_nothing():
    """Kernels with all samples met need more memory than those among new ones."""
    X, y = rows(160)
    bank = gaussian_bank(TAUS, memory=4 * 4 * 50 * 50)
    model, other = UFOMKLClassifier(bank), UFOMKLClassifier(bank)
    for each in (model, other):
        for part in (slice(0, 50), slice(50, 75), slice(75, 100)):
            each.partial_fit(X[part], y[part])
    with pytest.raises(ValueError, match="Give fewer rows at a time"):
        model.partial_fit(X[100:150], y[100:150])
    for each in (model, other):
        each.partial_fit(X[150:], y[150:])
    assert_same_model(model, other, X[:20])


def test_weights_of_classes_count_in_streams():
    X, y = rows()
    wanted = UFOMKLClassifier(BANK).partial_fit(X, y, sample_weight=np.array([5.0, 1.0, 1.0])[y])
    found = UFOMKLClassifier(BANK, class_weight={0: 5.0}).partial_fit(X, y)
    np.testing.assert_allclose(found.decision_function(X), wanted.decision_function(X))


def test_balanced_classes_need_all_samples():
    X, y = rows()
    with pytest.raises(ValueError, match="class_weight='balanced' needs all samples"):
        UFOMKLClassifier(BANK, class_weight="balanced").partial_fit(X, y)


def test_attributes_of_another_fit_are_gone():
    X, y = rows()
    model = UFOMKLClassifier(BANK).fit(X[:30], y[:30]).partial_fit(X, y)
    assert not hasattr(model, "dual_gap_")
    assert not hasattr(model, "objective_")
    assert not hasattr(model.fit(X, y), "mistakes_")
