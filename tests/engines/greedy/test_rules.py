"""The rules that choose the next atom, against slow direct computations."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.datasets import load_iris

from mixnorm import GreedyOptions, ShareBoostClassifier
from mixnorm.engines._core.corrective import CorrectionProblem, Support
from mixnorm.engines.greedy.choice import Limits, choose
from mixnorm.engines.greedy.rules import (
    RULES,
    Choice,
    column_gains,
    joint_gains,
    line_gains,
)
from mixnorm.exceptions import FewerFeaturesWarning, NotConvergedWarning
from mixnorm.losses import MarginSoftmax, MultinomialLogistic, Squared
from mixnorm.pools import Columns, Products, Stumps

LOSSES = [MarginSoftmax(), MultinomialLogistic(), Squared()]
NONE = frozenset()


def choose_one(support, pool, rule, exclude, limits=None):
    """Return the best atom by a rule, None if no atom helps."""
    return next(iter(choose(support, pool, rule, exclude, limits or Limits())), None)


def problem(loss, alpha=1e-2, n_samples=120, dtype="float64", seed=0, tol=1e-13):
    """A table of ten columns and a support that holds the first two, at its optimum or near it."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, 10)).astype(dtype)
    X /= np.abs(X).max(axis=0)
    signal = X[:, :3] @ rng.standard_normal((3, 3)) * 4.0 + rng.standard_normal((n_samples, 3))
    y = signal.argmax(axis=1) if loss.is_classifier else signal
    weight = rng.uniform(0.5, 1.5, n_samples)
    weight = (weight / weight.sum()).astype(dtype)
    settings = CorrectionProblem(loss, loss.encode(y, 3, weight), weight, 3, alpha, 1000)
    support = Support(settings, True, 4)
    for atom in (0, 1):
        support.append(atom, np.ascontiguousarray(X[:, [atom]].T))
    support.correct(tol, 1.0)
    return X, support


def choices_of(X, support, blocks):
    made = []
    for block in blocks:
        rows = np.ascontiguousarray(X[:, block].T)
        made.append(Choice(tuple(block), rows, rows @ support.residual))
    return made


def objective_with(support, choice, weights):
    """The objective when the choice's columns come in with given weights, the rest unchanged."""
    task = support.problem
    scores = support.scores + choice.rows.T @ weights
    value, _ = task.loss.value_and_residual(scores, task.target, task.weight)
    return value + task.alpha * float((weights**2).sum())


@pytest.mark.parametrize("alpha", [0.0, 1e-2])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_line_gain_is_the_drop_along_the_gradient(loss, alpha):
    X, support = problem(loss, alpha)
    choices = choices_of(X, support, [[2], [3], [4, 5]])
    for gain, choice in zip(line_gains(support, choices), choices, strict=True):

        def along(length, choice=choice):
            return objective_with(support, choice, -length * choice.slope)

        best = minimize_scalar(along, bracket=(0.0, 10.0), tol=1e-10)
        # Newton's steps end at a thousandth of the first slope: the gain is off by its square.
        assert gain == pytest.approx(along(0.0) - best.fun, rel=1e-4)
        assert gain > 0.0


def dense_hessian(support, column):
    """The Hessian in the weights of a column, by differences of the gradient."""
    task, step = support.problem, 1e-5
    hessian = np.empty((3, 3))
    for output in range(3):
        move = np.zeros_like(support.scores)
        move[:, output] = step * column
        ends = [
            task.loss.value_and_residual(support.scores + sign * move, task.target, task.weight)[1]
            for sign in (1.0, -1.0)
        ]
        hessian[output] = column @ (ends[0] - ends[1]) / (2.0 * step)
    return hessian


@pytest.mark.parametrize("alpha", [0.0, 1e-2])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_column_gain_is_that_of_a_newton_step(loss, alpha):
    X, support = problem(loss, alpha)
    choices = choices_of(X, support, [[2], [3], [4, 5]])
    for gain, choice in zip(column_gains(support, choices), choices, strict=True):
        wanted = 0.0
        for row, slope in zip(choice.rows, choice.slope, strict=True):
            hessian = dense_hessian(support, row) + 2.0 * alpha * np.eye(3)
            wanted += 0.5 * slope @ np.linalg.pinv(hessian, rcond=1e-7) @ slope
        assert gain == pytest.approx(wanted, rel=1e-5)


def test_column_gain_is_exact_for_one_column_and_the_squared_loss():
    X, support = problem(Squared())
    (choice,) = choices_of(X, support, [[3]])
    hessian = support.problem.weight @ choice.rows[0] ** 2 + 2.0 * support.problem.alpha
    drop = support.objective - objective_with(support, choice, -choice.slope / hessian)
    # The chosen columns' own penalty stays as it is.
    drop -= support.objective - support.value
    assert column_gains(support, [choice])[0] == pytest.approx(drop, rel=1e-10)


@pytest.mark.parametrize("blocks", [[[2], [3], [7]], [[2, 3], [4], [5, 6, 7]]])
def test_joint_gain_is_exact_for_the_squared_loss(blocks):
    """A quadratic objective falls by exactly the gain when all columns are refitted."""
    X, support = problem(Squared())
    choices = choices_of(X, support, blocks)
    gains = joint_gains(support, choices)
    for gain, choice in zip(gains, choices, strict=True):
        before = support.objective
        _, trial = problem(Squared())
        trial.append(choice.atom, choice.rows)
        trial.correct(1e-14, 1.0)
        assert gain == pytest.approx(before - trial.objective, rel=1e-6)


def touched_loss(support, rows, c):
    """The loss of one output on the samples that some rows touch (:eq:`touched-loss`)."""
    size, error = np.sqrt((rows**2).sum(axis=0)), np.abs(support.residual)
    share = (size @ error[:, c]) ** 2 / (size**2 @ error[:, c])
    return support.value * share / error.sum()


def model_gain(support, choice):
    """Half g^T S^{-1} g under the per-output curvature of the loss, capped, by dense matrices."""
    task = support.problem
    curvature = task.loss.curvature(support.residual, task.target, task.weight)
    rows = np.concatenate([support.design, choice.rows])
    ridge = np.full(len(rows), 2.0 * task.alpha)
    ridge[0] = 0.0
    size, gain, left = len(support.design), 0.0, support.gradient()
    for c in range(3):
        matrix = rows * curvature[:, c] @ rows.T + np.diag(ridge)
        inner, cross = matrix[:size, :size], matrix[:size, size:]
        slope = choice.slope[:, c] - cross.T @ np.linalg.solve(inner, left[:, c])
        # The corner of the inverse is the inverse of the Schur complement.
        free = 0.5 * slope @ np.linalg.inv(matrix)[size:, size:] @ slope
        most = touched_loss(support, choice.rows, c)
        gain += most * (1.0 - np.exp(-free / most))
    return gain


@pytest.mark.parametrize("loss", LOSSES[:2], ids=repr)
@pytest.mark.parametrize("blocks", [[[2], [3], [7]], [[2, 3], [4]]])
def test_joint_gain_under_the_curvature_model(loss, blocks):
    X, support = problem(loss)
    support.curvature(fresh=True)
    choices = choices_of(X, support, blocks)
    for gain, choice in zip(joint_gains(support, choices), choices, strict=True):
        assert gain == pytest.approx(model_gain(support, choice), rel=1e-8)


@pytest.mark.parametrize("loss", LOSSES[:2], ids=repr)
def test_joint_gain_where_the_corrective_step_ended_early(loss):
    """What the chosen columns have still to gain, of loss and penalty, is not the choice's."""
    X, support = problem(loss, alpha=0.1, tol=0.01)
    support.curvature(fresh=True)
    loss_alone = support.design @ support.residual
    assert np.abs(support.gradient()).max() > 1e-3
    assert np.abs(support.gradient() - loss_alone).max() > 1e-3
    choices = choices_of(X, support, [[2], [3], [7]])
    for gain, choice in zip(joint_gains(support, choices), choices, strict=True):
        assert gain == pytest.approx(model_gain(support, choice), rel=1e-8)


def test_joint_gain_is_at_most_the_loss():
    """One sample, far off: Newton's model alone would promise more than there is to gain."""
    X, support = problem(MarginSoftmax(), alpha=0.0)
    lone = np.zeros((1, X.shape[0]))
    lone[0, int(np.argmax(np.abs(support.residual).sum(axis=1)))] = 1.0
    choice = Choice("lone", lone, lone @ support.residual)
    assert 0.0 < joint_gains(support, [choice])[0] <= support.value


@pytest.mark.parametrize("gains", [line_gains, column_gains, joint_gains])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_samples_of_weight_zero_do_not_count(loss, gains):
    """Whatever their columns hold."""
    found = []
    for value in (0.0, 100.0):
        X, full = problem(loss)
        weight = full.problem.weight.copy()
        weight[::3] = 0.0
        X[::3, 2:] = value
        support = Support(replace(full.problem, weight=weight), True, 4)
        support.correct(1e-13, 1.0)
        choices = choices_of(X, support, [[2], [3], [4]])
        found.append([*gains(support, choices), support.promised_drop(choices[0].rows, 1.0)])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-10)


def test_joint_gain_without_intercept_on_an_empty_support():
    X, full = problem(MarginSoftmax())
    support = Support(full.problem, False, 3)
    choices = choices_of(X, support, [[0], [1]])
    gains = joint_gains(support, choices)
    assert np.all(np.asarray(gains) > 0.0)
    assert choose_one(support, Columns().prepare(X), "joint", NONE) is not None


def test_a_column_explained_by_the_chosen_ones_has_no_joint_gain():
    X, support = problem(Squared(), alpha=0.0)
    X[:, 2] = 0.5 * X[:, 0] - X[:, 1]
    X[:, 3] = X[:, 2] + 0.3 * X[:, 5]
    copy, mixed = joint_gains(support, choices_of(X, support, [[2], [3]]))
    assert copy == pytest.approx(0.0, abs=1e-10)
    assert mixed > 1e-6


def best_of(gains, choices):
    return choices[int(np.argmax(gains))].atom


@pytest.mark.parametrize("rule", sorted(RULES))
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_best_by_the_rule_is_chosen(loss, rule):
    X, support = problem(loss)
    pool = Columns().prepare(X, weight=support.problem.weight, scale=False)
    exclude = frozenset({0, 1})
    chosen = choose_one(support, pool, rule, exclude)
    cheap, refine = RULES[rule]
    shortlist = [atom for atom, _ in pool.top(support.residual, cheap, 8, exclude)]
    choices = choices_of(X, support, [[atom] for atom in shortlist])
    if refine is None:
        gradient = X.T @ support.residual
        norm = np.abs(gradient).sum(axis=1) if rule == "l1" else np.linalg.norm(gradient, axis=1)
        norm[:2] = 0.0
        wanted = int(np.argmax(norm))
    else:
        (wanted,) = best_of(refine(support, choices), choices)
    assert chosen.atom == wanted
    np.testing.assert_allclose(chosen.slope, X[:, [wanted]].T @ support.residual, atol=1e-14)
    assert chosen.gradient == pytest.approx(np.abs(chosen.slope).sum(), rel=1e-12)


@pytest.mark.parametrize("rule", sorted(RULES))
def test_nothing_to_choose(rule):
    X, support = problem(MarginSoftmax())
    pool = Columns().prepare(X, weight=support.problem.weight)
    assert choose_one(support, pool, rule, frozenset(range(10))) is None
    assert choose_one(support, pool, rule, frozenset(range(9))).atom == 9
    support.residual = np.zeros_like(support.residual)
    assert choose_one(support, pool, rule, NONE) is None


def test_gradients_of_rounding_size_are_not_chosen():
    """Columns already at their optimum come back only as noise."""
    X, support = problem(Squared(), alpha=0.0)
    pool = Columns().prepare(X, weight=support.problem.weight)
    assert choose_one(support, pool, "l1", frozenset(range(2, 10))) is None


@pytest.mark.parametrize("gains", [line_gains, column_gains, joint_gains])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_single_precision_agrees(loss, gains):
    X, support = problem(loss)
    wanted = gains(support, choices_of(X, support, [[2], [3], [4]]))
    X, support = problem(loss, dtype="float32")
    got = gains(support, choices_of(X, support, [[2], [3], [4]]))
    np.testing.assert_allclose(got, wanted, rtol=0.02)


def test_joint_never_chooses_a_copy_of_a_chosen_column():
    # The corrective step ends with a little gradient left, of which a copy has as much: divided by
    # the curvature left to a copy, which is nothing, it used to look like the largest gain.
    X, y = load_iris(return_X_y=True)
    twice = np.column_stack([X, 2.54 * X[:, 2]])
    model = ShareBoostClassifier(4).fit(twice, y)
    assert not {2, 4} <= set(model.selected_[:3].tolist())
    plain = ShareBoostClassifier(4).fit(X, y)
    np.testing.assert_allclose(model.path_["loss"][:3], plain.path_["loss"][:3], rtol=1e-2)


@pytest.mark.parametrize("loss", ["margin", "logistic"])
@pytest.mark.parametrize("pool", [None, Stumps(), Products()], ids=str)
def test_newton_steps_of_columns_without_a_penalty(pool, loss):
    """Tables with copies, constants and sums of columns, in which classes are told apart."""
    for seed in (19, 37, 49, 50, 51):
        rng = np.random.default_rng(seed)
        n, d, k = rng.integers(4, 40), rng.integers(2, 7), rng.integers(2, 6)
        X = rng.normal(size=(n, d))
        X = np.concatenate([X, X[:, :1], X @ rng.normal(size=(d, 1)), np.ones((n, 1))], axis=1)
        y = rng.integers(0, k, size=n)
        y[:k] = np.arange(min(n, k))
        weight = rng.integers(0, 3, size=n).astype(float)
        weight[0] = 1.0
        scales = ("std", False) if seed % 2 else (False, "std")
        for given, scale in zip((None, weight), scales, strict=True):
            model = ShareBoostClassifier(
                alpha=0, loss=loss, pool=pool, options=GreedyOptions(rule="column", scale=scale)
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FewerFeaturesWarning)
                warnings.simplefilter("ignore", NotConvergedWarning)
                model.fit(X, y, sample_weight=given)
            assert model.path_["loss"][-1] <= model.null_loss_
