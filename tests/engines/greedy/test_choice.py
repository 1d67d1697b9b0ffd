"""What comes in next: shortlists, limits on inputs and costs, several at a time, exact trials."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from mixnorm.engines._core.corrective import CorrectionProblem, Support
from mixnorm.engines.greedy import select
from mixnorm.engines.greedy.choice import (
    Limits,
    Scan,
    _find_candidates,
    choose,
    still_helps,
)
from mixnorm.engines.greedy.rules import RULES, exact_gains
from mixnorm.engines.penalties import as_penalty
from mixnorm.losses import MarginSoftmax, MultinomialLogistic, Squared
from mixnorm.pools import Columns, Stumps

LOSSES = [MarginSoftmax(), MultinomialLogistic(), Squared()]
NONE = frozenset()


def choose_one(support, pool, rule, exclude, limits=None):
    """Return the best atom by a rule, None if no atom helps."""
    return next(iter(choose(support, pool, rule, exclude, limits or Limits())), None)


def draw(loss, seed=0, n_samples=100, columns=5):
    """A table, and targets that depend on a product and two columns."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, columns))
    parts = np.column_stack([X[:, 0], X[:, 1] * X[:, 2], X[:, 3]])
    scores = parts @ rng.standard_normal((3, 3)) * 2.0 + rng.standard_normal((n_samples, 3))
    weight = rng.uniform(0.5, 1.5, n_samples)
    return X, scores.argmax(axis=1) if loss.is_classifier else scores, weight / weight.sum()


def start(loss, X, y, weight, alpha=1e-3, penalty="ridge"):
    problem = CorrectionProblem(
        loss, loss.encode(y, 3, weight), weight, 3, alpha, 1000, as_penalty(penalty)
    )
    support = Support(problem, True, 12)
    support.correct(1e-12, 0.0)
    return support


def add(support, pool, atom):
    rows, offset = support.centre(pool.columns(atom))
    support.append(atom, rows, offset=offset)
    support.correct(1e-12, 0.0)


# --- exact trials


def refitted(support, pool, atoms):
    """The least objective over all weights of some atoms: scipy, from zero."""
    task = support.problem
    rows = [np.ones((1, len(task.weight))), *(pool.columns(atom) for atom in atoms)]
    B = np.concatenate(rows).T

    def objective(flat):
        W = flat.reshape(B.shape[1], 3)
        value, residual = task.loss.value_and_residual(B @ W, task.target, task.weight)
        slope = B.T @ residual
        slope[1:] += 2.0 * task.alpha * W[1:]
        return value + task.alpha * (W[1:] ** 2).sum(), slope.ravel()

    options = {"maxiter": 5000, "maxfun": 20_000, "ftol": 1e-15, "gtol": 1e-9}
    zero = np.zeros(B.shape[1] * 3)
    return minimize(objective, zero, jac=True, method="L-BFGS-B", options=options).fun


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_exact_is_brute_force_over_the_shortlist(loss, pools):
    different = 0
    for seed in range(14):
        X, y, weight = draw(loss, seed)
        X = X + 2.0 * X[:, [0]]  # alike, so that gradients tell little
        y = y[::-1] if seed % 2 else y  # and with nothing to find, less
        pool = pools["plain"](X)
        support = start(loss, X, y, weight)
        for atom in ((0,), (4,)):
            add(support, pool, atom)
        exclude = frozenset(support.blocks)
        shortlist = [atom for atom, _ in pool.top(support.residual, "l1", 8, exclude)]
        truth = {atom: refitted(support, pool, [*exclude, atom]) for atom in shortlist}
        chosen = choose_one(support, pool, "exact", exclude)
        ordered = sorted(truth.values())
        if ordered[1] - ordered[0] > 0.03 * (support.objective - ordered[0]):
            assert chosen.atom == min(truth, key=truth.get)
        else:  # trials end when two hundredths of the gain are left
            assert truth[chosen.atom] <= ordered[0] + 0.03 * (support.objective - ordered[0])
        different += chosen.atom != shortlist[0]
    assert different  # else the test would be passed by the cheap rule


@pytest.mark.parametrize("penalty", ["ridge", "linf,1", "l1"])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_exact_gains_are_those_of_full_refits(loss, penalty, pools):
    X, y, weight = draw(loss)
    pool = pools["plain"](X)
    support = start(loss, X, y, weight, penalty=penalty)
    add(support, pool, (0,))
    choices = choose(support, pool, "joint", frozenset(support.blocks), Limits(), count=4)
    before = support.objective, support.weights.copy(), support.size, dict(support.blocks)
    gains = exact_gains(support, choices)
    assert (support.objective, support.size, support.blocks) == (before[0], *before[2:])
    assert np.array_equal(support.weights, before[1])
    for gain, choice in zip(gains, choices, strict=True):
        trial = support.branch(own_room=True)
        add(trial, pool, choice.atom)
        assert gain == pytest.approx(support.objective - trial.objective, abs=0.05 * max(gains))


# --- shortlists


@pytest.mark.parametrize("rule", sorted(RULES))
def test_refined_rules_ask_for_different_atoms(rule, pools):
    loss = MarginSoftmax()
    X, y, weight = draw(loss)
    pool = pools["varied"](X)
    choice = choose_one(start(loss, X, y, weight), pool, rule, NONE)
    asked = any("shortlist" in call for call in pool.calls)
    assert asked == (RULES[rule][1] is not None)
    assert choice is not None


def test_a_shortlist_decides_what_is_looked_at(pools):
    loss = MarginSoftmax()
    X, y, weight = draw(loss, columns=9)
    support = start(loss, X, y, weight)
    pool = pools["varied"](X)
    found = choose(support, pool, "joint", NONE, Limits(), count=4)
    assert len({choice.atom[0] for choice in found}) == 4
    firsts = [atom[0] for atom, _ in pool.top(support.centred_residual(), "l1", 8, NONE)]
    assert len(set(firsts)) < 8  # the best eight by themselves are not so different


# --- limits on inputs


def allowed(pool, chosen, limit):
    """The atoms that may come in beside the chosen ones."""
    used = set().union(*chosen)
    return [atom for atom in pool.atoms if atom not in chosen and len(used | set(atom)) <= limit]


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
@pytest.mark.parametrize("linear", [True, False])
def test_the_best_atom_within_the_inputs_is_chosen(limit, linear, pools):
    """By the l1 rule, looked up among all atoms."""
    loss = MarginSoftmax()
    for seed in range(4):
        X, y, weight = draw(loss, seed, columns=7)
        pool = pools["products"](X, linear=linear)
        support, chosen = start(loss, X, y, weight), []
        for _ in range(6):
            choice = choose_one(support, pool, "l1", frozenset(chosen), Limits(inputs=limit))
            fitting = allowed(pool, chosen, limit)
            if choice is None:
                assert not fitting
                break
            scores = pool.scores(support.centred_residual(), "l1")
            assert choice.atom == max(fitting, key=scores.get)
            add(support, pool, choice.atom)
            chosen.append(choice.atom)
        assert chosen or limit == 1


def test_the_pool_is_asked_until_something_fits(pools):
    """Dozens of products are better than any column, and all of them read too much."""
    loss, rng = Squared(), np.random.default_rng(0)
    X = rng.standard_normal((200, 9))
    products = [X[:, i] * X[:, j] for i in range(9) for j in range(i)]
    Y = np.stack(products, axis=1) @ rng.standard_normal((36, 3)) + 0.1 * X[:, :3]
    weight = np.full(200, 1 / 200)
    for rule in RULES:
        pool, support = pools["products"](X), start(loss, X, Y, weight)
        scores = pool.scores(support.centred_residual(), "l1")
        best = sorted(scores, key=scores.get, reverse=True)
        assert min(map(len, best[:9])) == 2
        assert len(choose_one(support, pool, rule, NONE, Limits(inputs=1)).atom) == 1
        assert len(pool.calls) > 1


def test_columns_in_use_are_looked_at_beside_better_misfits(pools):
    """With one column left to come in, a refined rule sees the best atoms of those in use."""
    loss = MarginSoftmax()
    X, y, weight = draw(loss, columns=12)
    pool, support = pools["products"](X), start(loss, X, y, weight)
    for atom in ((5, 6), (7, 8)):
        add(support, pool, atom)
    exclude, used = frozenset(support.blocks), frozenset({5, 6, 7, 8})
    best = [atom for atom, _ in pool.top(support.centred_residual(), "l1", 8, exclude)]
    inside = {atom for atom in pool.atoms if set(atom) <= used} - exclude
    assert not inside & set(best)
    left = Limits(inputs=5).allowance(pool, support.blocks)
    found = _find_candidates(support, Scan("l1", 8, exclude), left)
    fitting = {atom for atom in best if len(set(atom) | used) <= 5}
    assert {choice.atom for choice in found} == inside | fitting
    assert len(inside) == 8 > len(fitting) > 0


def test_columns_come_in_at_their_pace():
    loss = MarginSoftmax()
    X, y, weight = draw(loss, columns=7, n_samples=300)
    pool, target = Stumps().prepare(X, weight=weight), loss.encode(y, 3, weight)
    options = {"n_atoms": 15, "n_outputs": 3, "weight": weight, "alpha": 1e-3, "rule": "joint"}
    path = select(pool, loss, target, **options, max_inputs=4, rounds_per_input=3)
    counts = [len({column for column, _ in step.support}) for step in path.rounds]
    assert all(count <= min(4, 1 + done // 3) for done, count in enumerate(counts))
    assert counts[-1] == 4
    free = select(pool, loss, target, **options, rounds_per_input=3)
    assert [step.atom for step in free.rounds[:12]] == [step.atom for step in path.rounds[:12]]
    several = select(pool, loss, target, **options, rounds_per_input=3, atoms_per_round=4)
    counts = [len({column for column, _ in step.support}) for step in several.rounds]
    assert all(count <= 1 + done // 3 for done, count in enumerate(counts))


def test_a_pace_gives_way_where_nothing_else_helps(pools):
    """Products of two columns, of which the first already reads more than the pace allows."""
    loss = MarginSoftmax()
    X, y, weight = draw(loss, columns=5)
    pool = pools["products"](X, linear=False)
    target = loss.encode(y, 3, weight)
    path = select(
        pool, loss, target, n_atoms=4, n_outputs=3, weight=weight, alpha=1e-3, rounds_per_input=50
    )
    counts = [len(set().union(*step.support)) for step in path.rounds]
    assert counts == sorted(counts)
    assert counts[0] == 2
    assert len(counts) == 4
    with pytest.raises(ValueError, match="rounds_per_input=0 must be at least 1"):
        select(pool, loss, target, n_atoms=1, n_outputs=3, weight=weight, rounds_per_input=0)


def test_the_pool_is_told_the_inputs_once_there_are_no_more(pools):
    loss = MarginSoftmax()
    X, y, weight = draw(loss)
    pool = pools["products"](X)
    support = start(loss, X, y, weight)
    choose_one(support, pool, "joint", NONE, Limits(inputs=3))
    assert {call["inputs"] for call in pool.calls} == {None}
    add(support, pool, (0, 3))
    add(support, pool, (4,))
    pool.calls.clear()
    choose_one(support, pool, "joint", frozenset(support.blocks), Limits(inputs=3))
    assert {call["inputs"] for call in pool.calls} == {frozenset({0, 3, 4})}


def test_without_limits_the_pool_is_asked_once(pools):
    loss = MarginSoftmax()
    X, y, weight = draw(loss)
    for rule in RULES:
        pool = pools["products"](X)
        choose_one(start(loss, X, y, weight), pool, rule, NONE)
        assert len(pool.calls) == 1


RUNS = {
    "rule": st.sampled_from(sorted(RULES)),
    "swaps": st.integers(0, 1),
    "backward": st.integers(0, 2),
    "atoms_per_round": st.integers(1, 3),
    "penalty": st.sampled_from(["ridge", "l1"]),
    "seed": st.integers(0, 50),
}


def run(pool, loss, y, weight, seed=None, n_atoms=5, **options):
    target = loss.encode(y, 3, weight)
    options = {"alpha": 1e-3, "n_outputs": 3, "weight": weight, "n_atoms": n_atoms} | options
    return select(pool, loss, target, **options)


@given(limit=st.integers(1, 5), linear=st.booleans(), **RUNS)
def test_no_model_reads_more_than_allowed(pools, limit, linear, seed, **options):
    loss = LOSSES[seed % 3]
    X, y, weight = draw(loss, seed, 40, 5)
    pool = pools["products"](X, linear=linear)
    path = run(pool, loss, y, weight, max_inputs=limit, **options)
    for step in path.rounds:
        assert len(frozenset().union(*map(pool.inputs, step.support))) <= limit
    assert path.rounds or not linear
    assert len(path.rounds) == 5 or path.exhausted


def test_a_path_is_continued_up_to_its_limits(pools):
    """The inputs and the price of the path may be all that is allowed, and no more."""
    loss = MarginSoftmax()
    X, y, weight = draw(loss)
    pool = pools["priced"](X, np.full(15, 0.5))
    begun = run(pool, loss, y, weight, n_atoms=2)
    inputs = len(frozenset().union(*map(pool.inputs, begun.rounds[-1].support)))
    for limits in ({"max_inputs": inputs}, {"budget": 1.0}, {"max_inputs": inputs, "budget": 1.0}):
        path = run(pool, loss, y, weight, start=begun, n_atoms=3, **limits)
        assert path.rounds[1].support == begun.rounds[1].support
    for limits in ({"max_inputs": inputs - 1}, {"budget": 0.9}):
        with pytest.raises(ValueError, match="path to continue reads or costs more"):
            run(pool, loss, y, weight, start=begun, n_atoms=3, **limits)


def test_enough_inputs_change_nothing(pools):
    loss = MarginSoftmax()
    X, y, weight = draw(loss)
    paths = [
        run(pools["products"](X), loss, y, weight, max_inputs=limit, rule="joint")
        for limit in (None, 5, 99)
    ]
    for path in paths[1:]:
        assert [step.support for step in path.rounds] == [s.support for s in paths[0].rounds]


def test_groups_of_columns_count_each_column():
    loss = MarginSoftmax()
    X, y, weight = draw(loss, columns=6)
    pool = Columns(groups=["a", "a", "a", "b", "c", "c"]).prepare(X, weight=weight)
    path = run(pool, loss, y, weight, max_inputs=3, n_atoms=3)
    widths = [sum(len(pool.inputs(atom)) for atom in step.support) for step in path.rounds]
    assert max(widths) <= 3
    plain = Columns().prepare(X, weight=weight)
    assert len(run(plain, loss, y, weight, max_inputs=3).rounds) == 3


def test_a_pool_that_cannot_tell_its_inputs(pools):
    loss = MarginSoftmax()
    X, y, weight = draw(loss)
    with pytest.raises(TypeError, match="no method inputs.*max_inputs"):
        run(pools["plain"](X), loss, y, weight, max_inputs=2)
    with pytest.raises(ValueError, match="max_inputs=0"):
        run(pools["products"](X), loss, y, weight, max_inputs=0)


# --- budgets


def prices(pool_size, seed=0):
    return np.random.default_rng(seed).choice([0.1, 0.5, 1.0, 3.0], pool_size)


@given(budget=st.sampled_from([0.05, 0.3, 1.0, 4.0, 1000.0]), **RUNS)
def test_no_model_costs_more_than_the_budget(pools, budget, seed, **options):
    loss = LOSSES[seed % 3]
    X, y, weight = draw(loss, seed, 40, 4)
    pool = pools["priced"](X, prices(10, seed))
    path = run(pool, loss, y, weight, budget=budget, **options)
    for step in path.rounds:
        assert sum(map(pool.price, step.support)) <= budget * (1.0 + 1e-6)
    assert len(path.rounds) == 5 or path.exhausted


@pytest.mark.parametrize("rule", sorted(RULES))
def test_a_run_ends_when_nothing_affordable_helps(rule, pools):
    loss = MarginSoftmax()
    X, y, weight = draw(loss)
    pool = pools["priced"](X, prices(15))
    path = run(pool, loss, y, weight, budget=2.0, rule=rule, n_atoms=15)
    spent = sum(map(pool.price, path.rounds[-1].support))
    left = [atom for atom in pool.atoms if atom not in path.rounds[-1].support]
    assert path.exhausted
    assert min(map(pool.price, left)) > 2.0 - spent - 1e-9


def test_sums_of_prices_may_be_rounded(pools):
    loss = MarginSoftmax()
    X, y, weight = draw(loss)
    pool = pools["priced"](X, np.full(15, 0.1))
    for size in range(1, 8):
        path = run(pool, loss, y, weight, budget=size * 0.1 - 1e-17, n_atoms=15, rule="l1")
        assert len(path.rounds) == size


@pytest.mark.parametrize("rule", ["column", "joint", "line", "exact"])
def test_refined_rules_go_by_gain_per_price(rule, pools):
    loss, dearest = MarginSoftmax(), 0
    for seed in range(5):
        X, y, weight = draw(loss, seed, columns=4)
        pool = pools["priced"](X, prices(10, seed))
        support = start(loss, X, y, weight)
        offered = {atom for atom, _ in pool.top(support.centred_residual(), "l1", 8, NONE)}
        choices = choose(support, pool, rule, NONE, Limits(), count=10)
        choices = [each for each in choices if each.atom in offered]
        gains = RULES[rule][1](support, [replace(each, price=1.0) for each in choices])
        worth = [gain / pool.price(each.atom) for gain, each in zip(gains, choices, strict=True)]
        chosen = choose_one(support, pool, rule, NONE)
        assert worth[[each.atom for each in choices].index(chosen.atom)] == max(worth)
        dearest += gains.index(max(gains)) != worth.index(max(worth))
    assert dearest  # the gain alone would have chosen otherwise


def test_cheap_rules_leave_the_ranking_by_price_to_the_pool(pools):
    loss = MarginSoftmax()
    X, y, weight = draw(loss)
    pool = pools["priced"](X, prices(15))
    support = start(loss, X, y, weight)
    scores = pool.scores(support.centred_residual(), "l1")
    best = max(pool.atoms, key=lambda atom: scores[atom] / pool.price(atom) ** 0.5)
    for limits in (Limits(), Limits(inputs=5), Limits(budget=100.0)):
        assert choose_one(support, pool, "l1", NONE, limits).atom == best


def test_the_pool_is_told_what_is_left(pools):
    loss = MarginSoftmax()
    X, y, weight = draw(loss)
    pool = pools["priced"](X, np.full(15, 0.75))
    support = start(loss, X, y, weight)
    add(support, pool, (0,))
    choose_one(support, pool, "l1", frozenset(support.blocks), Limits(budget=2.0))
    assert pool.calls[-1]["budget"] == pytest.approx(1.25)


def test_a_pool_without_prices(pools):
    loss = MarginSoftmax()
    X, y, weight = draw(loss)
    with pytest.raises(TypeError, match="no method price.*budget"):
        run(pools["products"](X), loss, y, weight, budget=2.0)
    with pytest.raises(ValueError, match="budget=-1"):
        run(pools["priced"](X, np.ones(15)), loss, y, weight, budget=-1.0)


def test_columns_with_costs():
    loss = MarginSoftmax()
    X, y, weight = draw(loss, columns=6)
    pool = Columns(costs=[5.0, 1.0, 1.0, 2.0, 1.0, 1.0]).prepare(X, weight=weight)
    path = run(pool, loss, y, weight, budget=6.0, n_atoms=6, rule="joint")
    assert path.exhausted
    assert sum(map(pool.price, path.rounds[-1].support)) <= 6.0
    rich = run(pool, loss, y, weight, budget=11.0, n_atoms=6, rule="joint")
    assert len(rich.rounds) == 6


# --- several at a time


def one_by_one(pool, loss, target, weight, rule, n_atoms):
    """One atom after the other, written out: what a run does without anything else."""
    support = Support(CorrectionProblem(loss, target, weight, 3, 1e-3, 1000), True, n_atoms)
    support.correct(1e-6, 0.0)
    null, models = support.value, []
    for size in range(1, n_atoms + 1):
        choice = choose_one(support, pool, rule, frozenset(support.blocks))
        support.append(choice.atom, choice.rows, offset=choice.offset)
        goal = support.objective - support.promised_drop(choice.rows, choice.gradient)
        looser, floor = (1.0, 0.02) if size == n_atoms else (20.0, 0.1)
        support.correct(looser * 1e-4, floor * null, goal)
        models.append((choice.atom, support.weights[1:].copy(), support.objective))
    return models


@pytest.mark.parametrize("rule", sorted(RULES))
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_atom_a_round_to_the_last_bit(rule, dtype):
    loss = MarginSoftmax()
    X, y, weight = draw(loss, columns=9)
    X, weight = X.astype(dtype), weight.astype(dtype)
    pool, target = Columns().prepare(X, weight=weight), loss.encode(y, 3, weight)
    wanted = one_by_one(pool, loss, target, weight, rule, 5)
    for more in ({}, {"atoms_per_round": 1, "backward": 0, "penalty": "ridge", "swaps": 0}):
        path = select(
            pool, loss, target, n_atoms=5, n_outputs=3, weight=weight, alpha=1e-3, rule=rule, **more
        )
        for step, (atom, weights, objective) in zip(path.rounds, wanted, strict=True):
            assert step.atom == atom
            assert np.array_equal(step.weights, weights)
            assert step.objective == objective


@pytest.mark.parametrize("rule", sorted(RULES))
@pytest.mark.parametrize("count", [2, 3])
def test_several_atoms_from_one_scan(count, rule, pools):
    loss = MarginSoftmax()
    X, y, weight = draw(loss, columns=6, n_samples=300)
    pool = pools["plain"](X)
    path = run(pool, loss, y, weight, n_atoms=7, atoms_per_round=count, rule=rule, tol=1e-8)
    assert [len(step.support) for step in path.rounds] == list(range(1, 8))
    assert len(pool.calls) < 7
    objectives = [path.null_loss, *(step.objective for step in path.rounds)]
    assert objectives == sorted(objectives, reverse=True)
    support = start(loss, X, y, weight)
    for step in path.rounds:  # each with its own exact model
        assert step.objective == pytest.approx(refitted(support, pool, step.support), rel=1e-5)
        assert step.gradient > 0.0


def test_the_first_of_several_is_the_best_one(pools):
    loss = MarginSoftmax()
    X, y, weight = draw(loss)
    for rule in RULES:
        support, pool = start(loss, X, y, weight), pools["plain"](X)
        several = choose(support, pool, rule, NONE, Limits(), count=4)
        assert len({choice.atom for choice in several}) == 4
        assert several[0].atom == choose_one(support, pool, rule, NONE).atom


def test_copies_chosen_together_come_in_once():
    """The best columns of the scan are all copies of one; the second has nothing left to add."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 6))
    y = (X[:, 0] + 0.5 * X[:, 1] + 0.5 * rng.standard_normal(200) > 0).astype(int)
    X = np.column_stack([X[:, 0], X[:, 0], -X[:, 0], 2.0 * X[:, 0], X[:, 1:]])
    weight, loss = np.full(200, 1 / 200), MarginSoftmax()
    pool = Columns().prepare(X, weight=weight)
    path = select(
        pool, loss, loss.encode(y, 2, weight), n_atoms=3, n_outputs=2, weight=weight,
        alpha=1e-6, rule="l1", atoms_per_round=4,
    )  # fmt: skip
    assert len(set(path.rounds[-1].support) & {0, 1, 2, 3}) == 1
    assert 4 in path.rounds[-1].support


def test_what_has_vanished_does_not_help(pools):
    loss = Squared()
    X, y, weight = draw(loss)
    pool = pools["plain"](X)
    support = start(loss, X, y, weight)
    several = choose(support, pool, "l1", NONE, Limits(), count=3)
    assert still_helps(support, several[0]).atom == several[0].atom
    add(support, pool, several[0].atom)
    assert still_helps(support, several[0]) is None
    now = still_helps(support, several[1])
    np.testing.assert_allclose(now.slope, now.rows @ support.residual, atol=1e-14)


def test_counts_out_of_range(pools):
    loss = MarginSoftmax()
    X, y, weight = draw(loss)
    for options in ({"atoms_per_round": 0}, {"backward": -1}, {"swaps": -1}):
        (name,) = options
        with pytest.raises(ValueError, match=name):
            run(pools["plain"](X), loss, y, weight, **options)
