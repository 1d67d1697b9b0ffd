"""Kernel learners in corners that users found."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

from mixnorm import (
    ConvMKLClassifier,
    GreedyMKLClassifier,
    KernelMulticlassSVC,
    LinearMulticlassSVC,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
    SMSDMKLClassifier,
    UFOMKLClassifier,
)
from mixnorm.engines import multikernel
from mixnorm.exceptions import InterruptedFitWarning, MixnormWarning, NoKernelWarning
from mixnorm.kernels import KernelBank, KernelStack, gaussian_bank, tail_sums

RAW, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(RAW)


@pytest.mark.parametrize("scale", [1e-25, 1e-21, 1e19, 1e30])
def test_relative_widths_suit_any_units(scale):
    bank = gaussian_bank([0.25, 1.0, 4.0], relative=True)
    one, other = MKLClassifier(bank).fit(X, y), MKLClassifier(bank).fit(X * scale, y)
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-3)
    assert np.mean(other.predict(X * scale) == one.predict(X)) > 0.99


@pytest.mark.parametrize("kernels", [["polynomial"], ["linear", "polynomial"]])
def test_squares_on_kernels_that_dwarf_one_over_c(kernels):
    with pytest.raises(ValueError, match="so much larger than 1 / C.*Scale the columns"):
        MKLRegressor(KernelBank(kernels, normalize=None)).fit(RAW, y)
    bank = KernelBank(kernels, dtype="float64")
    assert MKLRegressor(bank).fit(RAW, y).score(RAW, y) > 0.2


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_targets_whose_squares_are_out_of_range(scale):
    with pytest.raises(ValueError, match="out of the range of floats; divide y"):
        MKLRegressor().fit(X, y * scale)


def test_columns_whose_squares_are_out_of_range():
    large = (X * 1e18).astype(np.float32)
    assert KernelMulticlassSVC().fit(large, y).score(large, y) > 0.9
    with pytest.raises(ValueError, match="variance overflows; scale its columns"):
        KernelMulticlassSVC().fit(X * 1e160, y)
    with pytest.raises(ValueError, match="beyond 1e\\+140.*Scale its columns"):
        LinearMulticlassSVC().fit(X * 1e160, y)


def test_an_interrupt_within_a_search_ends_it(monkeypatch):
    real, calls = multikernel.solve, []

    def solve(*args, **kwargs):
        calls.append(1)
        found = real(*args, **kwargs)
        from dataclasses import replace

        return replace(found, interrupted=True) if len(calls) == 4 else found

    monkeypatch.setattr(multikernel, "solve", solve)
    with pytest.warns(InterruptedFitWarning):
        MKLClassifierCV(Cs=[1.0, 10.0], ps=[1.2], cv=3).fit(X, y)
    assert len(calls) == 5  # and the fit on all rows


def test_lists_go_to_groups_of_columns():
    bank = KernelBank.from_columns(None, {"two": [0, 1], "rest": [2, 3, 4]})
    one, other = MKLClassifier(bank).fit(X, y), MKLClassifier(bank).fit(X.tolist(), y)
    assert np.array_equal(one.decision_function(X), other.decision_function(X.tolist()))
    with pytest.raises(ValueError, match="X has no rows"):
        one.predict(X[:0])
    with pytest.raises(ValueError, match="X has no rows"):
        MKLClassifier(bank).fit(X[:0], y[:0])


def test_kernels_of_zeros_have_no_weight():
    K = X @ X.T
    model = SMSDMKLClassifier(kernel="precomputed").fit([K, 0.0 * K], y)
    assert model.kernel_weights_[0] > 0.0
    assert model.kernel_weights_[1] == 0.0
    assert model.cost_["kernels"] == 1


def test_an_interrupted_descent_reports_what_it_returns(monkeypatch):
    from mixnorm.engines.mirror import KernelLearner

    real, calls = KernelLearner.refresh, []

    def refresh(self, samples):
        calls.append(1)
        if len(calls) == 3:  # as a signal that comes during the third pass does
            raise KeyboardInterrupt
        real(self, samples)

    monkeypatch.setattr(KernelLearner, "refresh", refresh)
    model = UFOMKLClassifier(solver="mirror", epochs=10, random_state=0)
    with pytest.warns(InterruptedFitWarning, match="after 3 epochs"):
        model.fit(X, y)
    monkeypatch.undo()
    whole = UFOMKLClassifier(solver="mirror", epochs=3, random_state=0).fit(X, y)
    assert model.objective_ == whole.objective_
    assert model.dual_gap_ == whole.dual_gap_


def test_a_stack_needs_the_right_setting():
    with pytest.raises(TypeError, match="set kernel='precomputed'"):
        MKLClassifier().fit(KernelStack(X @ X.T), y)


def test_transformers_that_make_other_rows():
    pd = pytest.importorskip("pandas")
    from sklearn.feature_extraction.text import TfidfVectorizer

    frame = pd.DataFrame({"text": ["a b", "b c", "c d", "d e"] * 5})
    bank = KernelBank.from_columns({"words": TfidfVectorizer()}, {"words": ["text"]})
    with pytest.raises(ValueError, match="made 1 rows of 20.*give a single name"):
        MKLClassifier(bank).fit(frame, [0, 1] * 10)


def test_functions_that_return_nan():
    bank = KernelBank([lambda A, B: np.full((len(A), len(B)), np.nan)])
    with pytest.raises(ValueError, match="NaN between row 0 and itself"):
        MKLClassifier(bank).fit(X, y)
    K = X @ X.T
    K[3, 4] = np.nan
    with pytest.raises(ValueError, match="kernel 0 has nan in row 3"):
        tail_sums(K, 2)


def test_labels_of_a_stream_must_be_known():
    labels = np.where(y == 2, np.nan, y)
    with pytest.raises(ValueError, match="y contains NaN"):
        UFOMKLClassifier().partial_fit(X, labels)


def test_equal_targets():
    with pytest.warns(NoKernelWarning, match="unless all targets are equal"):
        assert np.all(MKLRegressor().fit(X, np.ones(178)).predict(X) == 1.0)


def test_scores_of_several_outputs_are_scikit_learns():
    rng = np.random.default_rng(0)
    Y = np.c_[X[:, 0], 100.0 * rng.standard_normal(178)]
    folds = list(KFold(3, shuffle=True, random_state=0).split(X))
    model = MKLRegressorCV(Cs=[1.0], ps=[1.2], cv=folds, tol=1e-6).fit(X, Y)
    expected = [
        r2_score(Y[test], MKLRegressor(C=1.0, tol=1e-6).fit(X[train], Y[train]).predict(X[test]))
        for train, test in folds
    ]
    assert model.best_score_ == pytest.approx(np.mean(expected), abs=0.05)


def test_folds_without_training_rows():
    with pytest.raises(ValueError, match="no rows to learn from"):
        MKLClassifierCV(Cs=[1.0], ps=[1.2], cv=[(np.arange(0), np.arange(178))]).fit(X, y)


TIED = [
    MKLClassifier(),
    MKLClassifier(gaussian_bank([0.5, 2.0], factors="nystrom", rank=20)),
    ConvMKLClassifier(tail=2, loss="squared_hinge"),
    SMSDMKLClassifier(tail=2),
    UFOMKLClassifier(solver="mirror", random_state=0),
    KernelMulticlassSVC(),
    KernelMulticlassSVC(kernel="poly"),
    LinearMulticlassSVC(),
    GreedyMKLClassifier(n_kernels=3),
    GreedyMKLClassifier(KernelBank(["linear", "rbf"]), n_kernels=2, loss="logistic"),
]


@pytest.mark.parametrize("model", TIED, ids=str)
def test_tied_scores_give_one_label_whatever_the_company(model):
    """Classes that mirror one another are tied on the mirror, and of equal rows with two labels."""
    rng = np.random.default_rng(0)
    half = rng.standard_normal((20, 7)) * 10.0 ** np.arange(-3, 4)
    labels = rng.integers(0, 3, 20)
    rows = np.concatenate([half, half, half])
    targets = np.concatenate([labels, (labels + 1) % 3, (labels + 2) % 3])  # each row has them all
    new = np.concatenate([half, 0.5 * half[:10] + 0.5 * half[10:], np.zeros((1, 7))])
    model = clone(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MixnormWarning)  # there is nothing to learn
        model.fit(rows, targets)
    batch = model.predict(new)
    for size in (1, 3):
        parts = [new[start : start + size] for start in range(0, len(new), size)]
        np.testing.assert_array_equal(np.concatenate([model.predict(X) for X in parts]), batch)


@pytest.mark.parametrize("model", TIED, ids=str)
def test_scores_of_single_rows_and_batches_agree_to_the_last_digits(model):
    model = clone(model).fit(X, y)
    scores = model.decision_function(X)
    single = np.concatenate([model.decision_function(X[i : i + 1]) for i in range(40)])
    atol = 1e-12 * np.max(np.abs(scores))
    np.testing.assert_allclose(single, scores[:40], rtol=0.0, atol=atol)


def test_scores_that_are_small_beside_their_terms_keep_their_digits():
    """On points of a grid kernels have the same bits, and rounding is that of sums alone."""
    rng = np.random.default_rng(0)
    rows, labels = np.linspace(0.0, 1.0, 40)[:, None], rng.integers(0, 3, 40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MixnormWarning)
        model = GreedyMKLClassifier(alpha=1e-13).fit(rows, labels)
    scores = model.decision_function(rows)
    single = np.concatenate([model.decision_function(rows[i : i + 1]) for i in range(40)])
    np.testing.assert_allclose(single, scores, rtol=0.0, atol=1e-10 * np.max(np.abs(scores)))
