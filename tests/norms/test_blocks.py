"""Partitions: every entry is in one block, and blocks come back as they went."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixnorm._array import to_numpy
from mixnorm.norms import MixedNorm
from mixnorm.norms.blocks import (
    BlockCache,
    EntryBlocks,
    LabelledBlocks,
    OutputBlocks,
    RowBlocks,
    block_norms,
    count_blocks,
    groups_are_equal,
    has_row_blocks,
)


def matrix(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


@st.composite
def partitions(draw):
    n, k = draw(st.integers(1, 9)), draw(st.integers(1, 5))
    size = n if draw(st.booleans()) else (n, k)
    count = draw(st.integers(1, n * k))
    labels = np.random.default_rng(draw(st.integers(0, 99))).integers(-3, count - 3, size=size)
    return (n, k), labels


def spelled_out(labels, shape):
    """Return the label of every entry."""
    return np.broadcast_to(labels[:, None] if labels.ndim == 1 else labels, shape)


@given(partitions())
def test_labels(partition):
    shape, labels = partition
    W = matrix(shape)
    blocks = LabelledBlocks(labels, shape, W)
    entries = spelled_out(labels, shape)
    wanted = sorted(tuple(np.sort(W[entries == label])) for label in np.unique(labels))
    parts = blocks.to_rows(W)
    found = sorted(tuple(np.sort(row[row != 0.0])) for part in parts for row in part)
    assert found == wanted
    assert blocks.n_blocks == len(wanted) == sum(len(part) for part in parts)
    np.testing.assert_array_equal(blocks.from_rows(parts), W)
    # Less than half of what the parts hold is there to fill them up.
    assert sum(part.size for part in parts) < 2 * W.size
    assert len(parts) <= 1 + math.ceil(math.log2(W.size + 1))


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
@given(partitions())
def test_norms_and_spread(p, partition):
    shape, labels = partition
    W = matrix(shape)
    blocks = LabelledBlocks(labels, shape, W)
    norms, unit = block_norms(blocks, W, p)
    assert unit == 1.0
    entries = spelled_out(labels, shape)
    wanted = np.zeros(shape)
    for label in np.unique(labels):
        wanted[entries == label] = np.linalg.norm(W[entries == label], p)
    found = np.broadcast_to(blocks.broadcast(norms), shape)
    np.testing.assert_allclose(found, wanted, rtol=1e-13)


@pytest.mark.parametrize("kind", [RowBlocks, OutputBlocks, EntryBlocks])
def test_plain(kind):
    W = matrix((4, 3))
    blocks = kind(W.shape)
    (part,) = blocks.to_rows(W)
    assert part.shape[0] == blocks.n_blocks
    np.testing.assert_array_equal(blocks.from_rows([part]), W)
    peaks = np.abs(part).max(axis=1)
    np.testing.assert_array_equal(blocks.norms(W, math.inf), peaks)
    assert np.all(np.abs(W) <= blocks.broadcast(peaks))


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1.0, 1e160, 1e300])
@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_scales(p, scale):
    W = matrix((5, 3))
    for blocks in (
        RowBlocks(W.shape),
        OutputBlocks(W.shape),
        LabelledBlocks(np.arange(5) % 2, W.shape, W),
    ):
        with np.errstate(over="raise", invalid="raise"):
            norms, unit = block_norms(blocks, W * scale, p)
        wanted, _ = block_norms(blocks, W, p)
        np.testing.assert_allclose(norms * (unit / scale), wanted, rtol=1e-13)


@pytest.mark.parametrize("fill", [0.0, math.nan, math.inf])
def test_nothing_to_scale_by(fill):
    norms, unit = block_norms(RowBlocks((2, 2)), np.full((2, 2), fill), 2.0)
    assert unit == 1.0
    np.testing.assert_array_equal(norms, np.full(2, fill))


def test_namespaces(xp):
    labels, W = np.asarray([3, 1, 3, 3, 2]), matrix((5, 2))
    here, there = LabelledBlocks(labels, W.shape, W), LabelledBlocks(labels, W.shape, xp.asarray(W))
    parts = there.to_rows(xp.asarray(W))
    for got, wanted in zip(parts, here.to_rows(W), strict=True):
        np.testing.assert_array_equal(to_numpy(got), wanted)
    np.testing.assert_array_equal(to_numpy(there.from_rows(parts)), W)
    assert to_numpy(there.broadcast(xp.asarray([1.0, 2.0, 3.0]))).shape == (5, 1)


def test_found_once():
    layouts, W, groups = BlockCache(), matrix((4, 2)), np.asarray([0, 0, 1, 1])
    blocks = layouts.find(groups, W)
    assert layouts.find(groups, W + 1.0) is blocks
    assert layouts.find(groups, np.ones((4, 3))) is not blocks
    assert layouts.find(groups.copy(), W) is not blocks


@pytest.mark.parametrize("kind", [np.asarray, list])
def test_labels_that_change_are_noticed(kind):
    groups = kind([0, 0, 1, 1])
    norm, W = MixedNorm(2, 1, groups), np.ones((4, 1))
    assert norm.value(W) == pytest.approx(2.0 * math.sqrt(2.0))
    groups[1] = 2
    assert norm.value(W) == pytest.approx(2.0 + math.sqrt(2.0))
    norm.set_params(groups=None)
    assert norm.value(W) == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("groups", "error", "message"),
    [
        ([0, 1], ValueError, r"shape \(2,\), but the array has shape \(3, 2\)"),
        (np.zeros((2, 3), int), ValueError, r"one label per row \(3,\) or one per entry \(3, 2\)"),
        ([[0, 1], [1]], ValueError, "one label per row"),
        ([0.0, 1.0, 2.0], TypeError, "whole numbers, got float64"),
        (["a", "b", "c"], TypeError, "whole numbers"),
        ("columns", ValueError, "groups='columns' is not known; use 'outputs', labels or None"),
    ],
)
def test_bad_groups(groups, error, message):
    with pytest.raises(error, match=message):
        MixedNorm(2, 1, groups).value(np.ones((3, 2)))


@pytest.mark.parametrize(
    ("huge", "tiny"), [(1e200, 1.0), (1e160, 1.0), (1.0, 1e-200), (1e-180, 1e-200)]
)
@pytest.mark.parametrize(("p", "length"), [(1.0, 7.0), (2.0, 5.0), (np.inf, 4.0)])
def test_norms_of_blocks_of_different_sizes(huge, tiny, p, length):
    """The square of the largest norm neither overflows nor vanishes, whatever the others are."""
    W = np.array([[3.0 * huge, 4.0 * huge], [tiny, 0.0]])
    norms, unit = block_norms(RowBlocks((2, 2)), W, p)
    np.testing.assert_allclose(norms * unit, [length * huge, tiny], rtol=1e-14, atol=1e-20 * huge)
    assert 0.0 < norms @ norms < np.inf


def test_norms_of_blocks_of_different_sizes_in_namespaces(xp):
    W = np.array([[3e200, 4e200], [1.0, 0.0]])
    norms, unit = block_norms(RowBlocks((2, 2)), xp.asarray(W), 2.0)
    wanted, same_unit = block_norms(RowBlocks((2, 2)), W, 2.0)
    assert unit == same_unit
    np.testing.assert_allclose(to_numpy(norms), wanted, rtol=1e-14)


def test_norms_of_no_blocks():
    norms, unit = block_norms(RowBlocks((2, 0)), np.ones((2, 0)), 2.0)
    assert (norms.tolist(), unit) == ([0.0, 0.0], 1.0)


def test_count_blocks():
    assert count_blocks(None, (5, 2)) == 5
    assert count_blocks("outputs", (5, 2)) == 2
    assert count_blocks([4, 4, 4, 1, 1], (5, 2)) == 2


def test_has_row_blocks():
    for groups in (None, [0, 1], (0, 1), np.asarray([0, 1])):
        assert has_row_blocks(groups)
    for groups in ("outputs", [[0, 1]], np.zeros((2, 2), int)):
        assert not has_row_blocks(groups)


def test_same_groups():
    labels = np.asarray([0, 1])
    assert groups_are_equal(None, None)
    assert groups_are_equal(labels, labels.copy())
    assert groups_are_equal(labels, [0, 1])
    assert groups_are_equal((0, 1), (0, 1))
    for first, second in [(labels, None), (labels, "outputs"), (labels, [0, 2]), (None, "outputs")]:
        assert not groups_are_equal(first, second)
        assert not groups_are_equal(second, first)
