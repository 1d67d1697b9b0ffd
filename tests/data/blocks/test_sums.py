import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from mixnorm.data import add, join_rows
from mixnorm.data.blocks.sums import Subtree, TreeSum


def bracket(left, right):
    return f"({left}+{right})"


@pytest.mark.parametrize(("n", "expected"), [
    (0, None), (1, "0"), (2, "(0+1)"), (3, "((0+1)+2)"), (6, "(((0+1)+(2+3))+(4+5))"),
    (7, "(((0+1)+(2+3))+((4+5)+6))"),
])  # fmt: skip
def test_the_tree_depends_on_the_number_of_blocks(n, expected):
    tree = TreeSum(bracket)
    tree.extend(Subtree(0, place, str(place)) for place in range(n))
    assert tree.total() == expected


def test_parts_add_up_to_the_same_tree():
    whole = TreeSum(bracket)
    whole.extend(Subtree(0, place, str(place)) for place in range(11))
    for edges in ([0, 1, 11], [0, 3, 4, 9, 11], [0, 5, 11], list(range(12))):
        total = TreeSum(bracket)
        for start, stop in itertools.pairwise(edges):
            part = TreeSum(bracket)
            part.extend(Subtree(0, place, str(place)) for place in range(start, stop))
            total.extend(part.subtrees)
        assert total.total() == whole.total()


def test_add_takes_numbers_arrays_and_tuples():
    assert add(None, 2) == add(2, None) == 2
    first, second = add((np.ones(2), None), (np.ones(2), 3.0))
    assert first.tolist() == [2, 2]
    assert second == 3.0


def test_join_rows_joins_dense_and_sparse_rows():
    assert join_rows(None, None) is None
    first, second = sp.csr_array([[1.0, 0]]), sp.csr_array([[0, 2.0]])
    y, X = join_rows((np.array(["a"]), first), (np.array(["bb"]), second))
    assert y.tolist() == ["a", "bb"]
    assert X.toarray().tolist() == [[1, 0], [0, 2]]
