"""The selector half: support, names, and back."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

from mixnorm import ShareBoostClassifier


@pytest.fixture
def model():
    X, y = load_iris(return_X_y=True, as_frame=True)
    return ShareBoostClassifier(2).fit(X, y), X


def test_support(model):
    model, _ = model
    assert np.array_equal(model.get_support(indices=True), np.sort(model.selected_))
    assert np.array_equal(np.flatnonzero(model.get_support()), np.sort(model.selected_))


def test_names(model):
    model, X = model
    names = X.columns[np.sort(model.selected_)]
    assert list(model.get_feature_names_out()) == list(names)
    assert list(model.get_feature_names_out(list(X.columns))) == list(names)
    with pytest.raises(ValueError, match="feature_names_in_"):
        model.get_feature_names_out(["a", "b", "c", "d"])


def test_names_without_names():
    X, y = load_iris(return_X_y=True)
    model = ShareBoostClassifier(2).fit(X, y)
    assert list(model.get_feature_names_out()) == [f"x{j}" for j in np.sort(model.selected_)]
    with pytest.raises(ValueError, match="length"):
        model.get_feature_names_out(["a"])


def test_inverse_transform_restores_places(model):
    model, X = model
    kept = model.transform(X)
    full = model.inverse_transform(kept)
    support = model.get_support(indices=True)
    assert full.shape == X.shape
    assert np.array_equal(full[:, support], np.asarray(X)[:, support])
    assert np.array_equal(model.inverse_transform(sp.csr_array(kept)), full)
    with pytest.raises(ValueError, match="the 2 columns"):
        model.inverse_transform(np.ones((3, 3)))


def test_wrong_tables_are_refused(model):
    model, X = model
    with pytest.raises(ValueError, match="feature names"):
        model.transform(X.iloc[:, :2])
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X.rename(columns={X.columns[0]: "other"}))
    with pytest.raises(ValueError, match="NaN"):
        model.predict(pd.DataFrame(X).replace(X.iloc[0, 0], np.nan))
