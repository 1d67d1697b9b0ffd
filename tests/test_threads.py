"""How many threads compiled loops and linear algebra use."""

import numba
import pytest

from mixnorm._threads import threads_for


def test_threads_are_given_back():
    before = numba.get_num_threads()
    with threads_for(10):
        assert numba.get_num_threads() == 1
    with threads_for(10**9):
        assert numba.get_num_threads() == before
    with threads_for(10, least=10):
        assert numba.get_num_threads() == before
    with pytest.raises(KeyboardInterrupt), threads_for(10):
        raise KeyboardInterrupt
    assert numba.get_num_threads() == before
