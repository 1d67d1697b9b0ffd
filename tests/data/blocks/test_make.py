"""What needs arrays in memory says so."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

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
