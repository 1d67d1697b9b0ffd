"""The synthetic families of ShareBoost's Appendix C."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixnorm.datasets import make_redundant_bits, make_shared_bits

powers_of_two = st.integers(1, 6).map(lambda bits: 2**bits)


@given(k=powers_of_two)
def test_shared_bits_follow_the_definition(k):
    X, y = make_shared_bits(k)
    bits = k.bit_length() - 1
    assert y.tolist() == list(range(k))
    for row, label in zip(X, y, strict=True):
        code = [1.0 if digit == "1" else -1.0 for digit in format(label, f"0{bits}b")]
        indicator = np.zeros(k)
        indicator[label] = 2 * bits
        np.testing.assert_array_equal(row, [*code, *indicator])


@given(k=powers_of_two, n=st.integers(1, 200), seed=st.integers(0, 9))
def test_shared_bits_are_balanced(k, n, seed):
    X, y = make_shared_bits(k, n, random_state=seed)
    one_each, _ = make_shared_bits(k)
    np.testing.assert_array_equal(X, one_each[y])
    counts = np.bincount(y, minlength=k)
    assert counts.sum() == n
    assert counts.max() - counts.min() <= 1


@given(
    k=powers_of_two,
    copies=st.integers(1, 5),
    n=st.none() | st.integers(1, 100),
    zeroed=st.floats(0, 1),
)
def test_redundant_bits_follow_the_definition(k, copies, n, zeroed):
    X, y = make_redundant_bits(k, copies, n, zeroed=zeroed, random_state=0)
    bits = k.bit_length() - 1
    blocks = X.reshape(len(y), copies, bits)
    codes = make_shared_bits(k)[0][:, :bits]
    gone = (blocks == 0).all(axis=2)
    assert gone.sum(axis=1).max() <= 1
    assert gone.sum() == round(zeroed * len(y))
    expected = np.repeat(codes[y][:, None, :], copies, axis=1)
    np.testing.assert_array_equal(blocks[~gone], expected[~gone])


def test_random_state_fixes_everything():
    first = make_redundant_bits(8, 3, 50, random_state=3)
    again = make_redundant_bits(8, 3, 50, random_state=3)
    other = make_redundant_bits(8, 3, 50, random_state=4)
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])
    assert not np.array_equal(first[0], other[0])


@pytest.mark.parametrize("k", [0, 1, 3, 12, -4])
def test_classes_must_be_a_power_of_two(k):
    with pytest.raises(ValueError, match="power of two"):
        make_shared_bits(k)
    with pytest.raises(ValueError, match="power of two"):
        make_redundant_bits(k)


def test_other_bad_values():
    with pytest.raises(ValueError, match="n_samples=0"):
        make_shared_bits(4, 0)
    with pytest.raises(ValueError, match="n_copies=0"):
        make_redundant_bits(4, 0)
    with pytest.raises(ValueError, match=r"zeroed=1\.5"):
        make_redundant_bits(4, zeroed=1.5)


@pytest.mark.parametrize("name", ["n_classes", "n_copies", "n_samples", "zeroed"])
@pytest.mark.parametrize("value", ["a", float("nan"), [1]])
def test_what_is_no_number_is_named(name, value):
    with pytest.raises((TypeError, ValueError), match=f"^{name}="):
        make_redundant_bits(**({"n_classes": 4} | {name: value}))
