"""What needs arrays in memory says so."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from mixnorm.data import check_in_memory, from_arrays, is_collection

X = np.ones((4, 2))


def test_arrays_and_frames_in_memory_are_no_collections():
    for given in (X, pd.DataFrame(X), [[1.0]], None, from_arrays(X)):
        assert not is_collection(given)
    check_in_memory(X, "MKLClassifier")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (from_arrays(X), ["a table of row blocks", "table.sample(10_000"]),
        (da.from_array(X), ["a Dask collection (Array)", "X.compute()"]),
        (dd.from_pandas(pd.DataFrame(X)), ["a Dask collection (DataFrame)", "X.compute()"]),
    ],
)
def test_blocks_are_refused_with_a_way_out(given, words):
    with pytest.raises(TypeError, match="^MKLClassifier takes arrays in memory") as caught:
        check_in_memory(given, "MKLClassifier")
    assert all(word in str(caught.value) for word in words)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ((X + 1j,), TypeError, "complex128, but a table of row blocks takes real numbers"),
        ((X.astype("M8[s]"),), TypeError, "takes real numbers"),
        ((X.astype(str),), TypeError, "takes real numbers"),
        ((da.from_array(X + 1j),), TypeError, "takes real numbers"),
        ((da.from_array(X).astype(object),), TypeError, "takes real numbers"),
        ((da.from_array(X).map_blocks(sparse.csr_array),), TypeError, "array of sparse matrices"),
        ((np.array([["a", 1.0]], dtype=object),), TypeError, "could not convert string"),
        ((pd.DataFrame({"a": ["b"]}),), ValueError, "Column 'a' of X is of type"),
        ((X[:, 0],), ValueError, r"X has shape \(4,\)"),
        ((X[None],), ValueError, "X has shape"),
        ((X, 3.0), ValueError, r"y has shape \(\)"),
        ((X, X[:, :1, None]), ValueError, "y has shape"),
        ((X, X[:3]), ValueError, "y has 3 rows, but X has 4"),
        ((X, None, 2.0), ValueError, "sample_weight has shape"),
        ((X, None, X[:, :1]), ValueError, "sample_weight has shape"),
        ((da.from_array(X), None, da.ones((4, 1))), ValueError, "one weight for each row"),
    ],
)
def test_arrays_that_are_no_table(given, error, words):
    with pytest.raises(error, match=words):
        from_arrays(*given)


def test_missing_objects_become_nan():
    found = from_arrays(np.array([[1.0, None], [2, True]], dtype=object))
    assert found.dtype == np.float64
    assert np.array_equal(found.sample(2)[0], [[1.0, np.nan], [2.0, 1.0]], equal_nan=True)


def test_a_data_frame_gives_names():
    frame = pd.DataFrame({"a": [1.5, 2.0], "b": pd.array([1, None], dtype="Int64")})
    table = from_arrays(frame.assign(c=[True, False]))
    assert table.names == ("a", "b", "c")
    assert np.array_equal(table.sample(2)[0], [[1.5, 1.0, 1.0], [2.0, np.nan, 0.0]], equal_nan=True)
    assert from_arrays(frame[["a"]].astype(np.float32)).dtype == np.float32
    assert from_arrays(pd.DataFrame(X)).names is None
