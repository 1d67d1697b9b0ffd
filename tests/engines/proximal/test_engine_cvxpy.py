"""The proximal engine against cvxpy."""

import numpy as np
import pytest

from mixnorm import losses
from mixnorm.engines.proximal import LossMixture
from mixnorm.norms import MixedNorm, as_norm

from .reference import LOSSES, NORMS, SMOOTH, Case, agrees, both_forms_agree, draw, pairs, size_of


@pairs(LOSSES, crossed=["joint logistic", "hinge"])
def test_every_loss_norm_and_form_agrees_with_cvxpy(name, norm):
    # Every other problem of this grid has no intercept.
    bare = (list(LOSSES).index(name) + NORMS.index(norm)) % 2 == 1
    case = draw(LOSSES[name], fit_intercept=not bare, **size_of(name))
    both_forms_agree(case, as_norm(norm), tol=9e-7)


@pytest.mark.slow  # minutes: losses with kinks, to six digits, on more rows
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", LOSSES)
def test_larger_problems_agree_with_cvxpy(name, norm, fit_intercept):
    case = draw(LOSSES[name], seed=1, fit_intercept=fit_intercept, **size_of(name, large=True))
    both_forms_agree(case, as_norm(norm), fraction=0.05, tol=9e-7)


@pairs(SMOOTH, crossed=["squared", "joint margin"])
def test_smooth_losses_agree_to_more_digits(name, norm):
    case = draw(LOSSES[name], seed=2)
    both_forms_agree(case, as_norm(norm), fraction=0.03, tol=1e-7, closeness=1e-7)


@pytest.mark.parametrize(
    "norm",
    [
        MixedNorm(2, 1, groups=(0, 0, 1, 1, 2, 2, 3, 3)),
        MixedNorm(np.inf, 1, groups=(5, 0, 5, 0, 5, 0, 1, 1)),
        MixedNorm(1, 1, groups=(0, 0, 0, 0, 1, 1, 1, 1)),
        MixedNorm(2, 1, groups="outputs"),
        MixedNorm(np.inf, 1, groups="outputs"),
        MixedNorm(2, 1, groups=np.arange(24).reshape(8, 3) % 5),
        MixedNorm(2, 2, groups=(0, 0, 0, 0, 1, 1, 1, 1)),
        MixedNorm(2, np.inf),
        MixedNorm(1, np.inf),
    ],
    ids=repr,
)
@pytest.mark.parametrize("name", ["squared", "joint logistic"])
def test_blocks_agree_with_cvxpy(name, norm):
    both_forms_agree(draw(LOSSES[name], seed=3), norm)


@pytest.mark.parametrize("loss", [losses.Huber(0.3), losses.MarginSoftmax(3.0)], ids=repr)
def test_parameters_of_losses_count(loss):
    both_forms_agree(draw(loss, seed=4), as_norm("l2,1"))


# Tasks of their own.


def tasks(parts, *, seed=0, sizes=(20, 12, 16), n_features=6, fit_intercept=True):
    """One matrix per task, of its own size, and a loss of its own."""
    rng = np.random.default_rng(seed)
    Xs = [rng.standard_normal((rows, n_features)) for rows in sizes]
    y, weight = np.zeros((max(sizes), len(sizes))), np.zeros((max(sizes), len(sizes)))
    truth = rng.standard_normal((n_features, len(sizes))) * (np.arange(n_features) < 3)[:, None]
    for task, (X, loss) in enumerate(zip(Xs, parts, strict=True)):
        own = X @ truth[:, task] + 0.3 * rng.standard_normal(len(X)) + 0.2
        y[: len(X), task] = np.where(own > 0.0, 1.0, -1.0) if loss.is_binary else own
        y[len(X) :, task] = 1.0  # nobody looks there
        weight[: len(X), task] = rng.uniform(0.5, 1.5, len(X))
    return Case(Xs, y, LossMixture(parts), weight / weight.sum(axis=0), fit_intercept)


MIXTURES = [
    (losses.Squared(), losses.Logistic(), losses.Squared()),
    (losses.Huber(), losses.SquaredHinge(), losses.Logistic()),
    (losses.Squared(), losses.Logistic(), losses.Hinge()),
    (losses.Absolute(), losses.Hinge(), losses.EpsilonInsensitive()),
]


@pytest.mark.parametrize(
    ("parts", "norm"), [(MIXTURES[0], norm) for norm in NORMS] + [(MIXTURES[1], "l2,1")], ids=str
)
def test_tasks_with_losses_of_their_own_agree_with_cvxpy(parts, norm):
    both_forms_agree(tasks(parts), as_norm(norm))
    case = tasks(parts, seed=1, fit_intercept=False)
    agrees(case, as_norm(norm), alpha=0.2 * case.alpha_max(as_norm(norm)))


@pytest.mark.parametrize(
    ("parts", "norm"), [(MIXTURES[2], "l2,1"), (MIXTURES[3], "trace")], ids=str
)
def test_tasks_with_kinks_agree_with_cvxpy(parts, norm):
    case = tasks(parts, sizes=(10, 7, 8), n_features=3)
    both_forms_agree(case, as_norm(norm), tol=9e-7)
