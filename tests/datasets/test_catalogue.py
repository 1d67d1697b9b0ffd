"""What the catalogue says agrees with the stored sets."""

import os

import numpy as np
import pytest

from mixnorm.datasets import load
from mixnorm.datasets.catalogue import NAMES, OPENML, SCIKIT_LEARN

STORED = os.environ.get("MIXNORM_DATA")


def test_names_are_sorted_and_complete():
    assert list(NAMES) == sorted(set(NAMES))
    assert set(OPENML) | set(SCIKIT_LEARN) <= set(NAMES)


@pytest.mark.parametrize("name", sorted(OPENML))
def test_catalogue_agrees_with_the_stored_set(name):
    if not STORED or not os.path.exists(os.path.join(STORED, f"{name}.npz")):
        pytest.skip(f"{name}.npz is not stored here (MIXNORM_DATA={STORED})")
    twin, data = OPENML[name], load(name, download_if_missing=False)
    n_train = twin.n_train or twin.shape[0]
    assert data.X.shape[0] == n_train
    assert data.X.dtype == twin.dtype
    assert np.prod(data.X.shape[1:]) == twin.shape[1]
    assert len(np.unique(data.y)) == len(twin.labels)
    if "class_names" in data:
        assert tuple(data.class_names) == twin.class_names
