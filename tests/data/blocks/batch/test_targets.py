import numpy as np
import pytest

from mixnorm.data import (
    ArraySource,
    BlockTable,
    from_arrays,
    gather_labels,
    gather_numbers,
    gather_targets,
    gather_weights,
    join_numbers,
    number_facts,
)

X = np.ones((7, 1))


def table_of(y, weight=None):
    return from_arrays(X, y, weight, block_rows=3)


def test_labels_get_their_places():
    y = np.array(["b", "b", "b", "a", "b", "b", "long"])
    classes, codes = gather_labels(table_of(y))
    assert classes.tolist() == ["a", "b", "long"]
    assert classes[codes].tolist() == y.tolist()


def test_numbers_keep_their_shape():
    y = np.arange(7)
    assert gather_numbers(table_of(y)).tolist() == y.tolist()
    assert gather_numbers(table_of(np.c_[y, y])).shape == (7, 2)
    assert gather_targets(table_of(y)).dtype == y.dtype


def test_weights():
    assert gather_weights(table_of(None)) is None
    assert gather_weights(table_of(None, np.arange(7))).tolist() == list(range(7))
    bad = BlockTable(ArraySource(X, None, np.r_[np.ones(6), -1.0]), block_rows=3)
    with pytest.raises(ValueError, match=r"-1.* in rows? 6"):
        gather_weights(bad)


def test_bad_targets_are_named():
    for y, message in (
        (np.r_[np.ones(6), np.nan], r"nan in rows? 6"),
        (np.array(["a"] * 7), "not numbers"),
        (np.ones(7, dtype=complex), "Complex data"),
    ):
        with pytest.raises(ValueError, match=message):
            gather_numbers(table_of(y))
    with pytest.raises(ValueError, match=r"0\.5 in rows? 6, which is not a label"):
        gather_labels(table_of(np.r_[np.ones(6), 0.5]))


def test_facts_leave_out_rows_that_lack_a_target():
    Y = np.array([[1.0, np.nan], [2.0, 5.0], [4.0, 6.0]])
    first = number_facts(Y[:2], None, allow_missing=True)
    both = join_numbers(first, number_facts(Y[2:], np.array([3.0]), allow_missing=True))
    assert both.missing == 1
    assert both.n_outputs == 2
    np.testing.assert_allclose(both.moments.mean, [3.5, 5.75])
