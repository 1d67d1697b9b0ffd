"""Which class of matrix suits a table."""

import numpy as np
import pytest
from scipy import sparse

from mixnorm.data import DenseMatrix, SparseMatrix, as_matrix, is_list_of_tables


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.coo_array])
def test_the_class_follows_the_table(form):
    X = form(np.eye(3))
    found = as_matrix(X, np.dtype("float32"))
    assert isinstance(found, DenseMatrix if form is np.asarray else SparseMatrix)
    assert found.shape == (3, 3)
    assert found.gradient(np.ones((3, 1), np.float32)).dtype == found.dtype == np.float32


def test_lists_of_tables():
    assert is_list_of_tables([np.eye(2), np.eye(2)])
    assert not is_list_of_tables([[1.0, 2.0]])
    assert not is_list_of_tables(np.eye(2))
