"""Errors of a stream: guesses, and rises that are found without false alarms."""

import numpy as np
import pytest

from mixnorm.cli.stream.account import CommonestGuess, MeanGuess, Rises


def rises(costs, task="classification"):
    found = Rises(task)
    for place, cost in enumerate(costs, start=1):
        found.add(500 * place, float(cost))
    return found.found


def test_chance_is_no_rise():
    rng = np.random.default_rng(0)
    for share in (0.02, 0.1, 0.4):
        assert rises(rng.binomial(500, share, 4000)) == []
    falling = 0.05 + 0.4 / np.sqrt(np.arange(1, 2000))
    assert rises(rng.binomial(500, falling)) == []
    assert rises(rng.gamma(50.0, 2.0, 8000), "regression") == []
    heavy = (rng.standard_t(4, (2000, 500)) ** 2).sum(axis=1)
    assert rises(heavy, "regression") == []


@pytest.mark.parametrize("change", [20, 133, 1501])
def test_a_large_rise_is_found_at_once(change):
    rng = np.random.default_rng(change)
    share = np.where(np.arange(2000) < change, 0.05, 0.2)
    [rise] = rises(rng.binomial(500, share))
    assert (rise.first, rise.last) == (500 * change + 1, 500 * change + 500)
    assert rise.before == pytest.approx(0.05, abs=0.01)
    assert rise.after == pytest.approx(0.2, abs=0.06)
    [rise] = rises(rng.gamma(50.0, np.where(np.arange(2000) < change, 2.0, 6.0)), "regression")
    assert (rise.first, rise.last) == (500 * change + 1, 500 * change + 1000)


def test_a_small_rise_is_found_in_larger_blocks():
    rng = np.random.default_rng(0)
    share = np.where(np.arange(4000) < 2000, 0.10, 0.12)
    [rise] = rises(rng.binomial(500, share))
    assert rise.last - rise.first + 1 in (5_000, 50_000)
    assert 1_000_000 < rise.last <= 1_100_000


def test_guesses_go_on():
    rng = np.random.default_rng(0)
    labels = rng.choice(["a", "b", "c"], 300, p=[0.3, 0.4, 0.3]).tolist()
    whole = CommonestGuess().cost(labels)
    for cut in (1, 2, 5, 50):
        first = CommonestGuess()
        cost = first.cost(labels[:cut])
        assert cost + CommonestGuess(**first.to_dict()).cost(labels[cut:]) == whole
    targets = rng.normal(size=50).tolist()
    first = MeanGuess("huber")
    cost = first.cost(targets[:7])
    then = MeanGuess("huber", **first.to_dict()).cost(targets[7:])
    assert cost + then == pytest.approx(MeanGuess("huber").cost(targets))


@pytest.mark.parametrize(
    ("loss", "cost"),
    [("squared", 4.5), ("absolute", 3.0), ("huber", 2.5), ("epsilon_insensitive", 2.9)],
)
def test_losses_of_the_mean(loss, cost):
    assert MeanGuess(loss).cost([4.0, 4.0, 1.0]) == pytest.approx(cost)
