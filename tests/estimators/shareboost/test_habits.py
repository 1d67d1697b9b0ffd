"""scikit-learn's habits around an estimator: pipelines, searches, frames, routed weights."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mixnorm import (
    ShareBoostClassifier,
)
from mixnorm.losses import MarginSoftmax
from mixnorm.pools import Columns


def iris():
    return load_iris(return_X_y=True, as_frame=True)


def test_pipeline_and_grid_search():
    X, y = iris()
    pipeline = make_pipeline(StandardScaler(), ShareBoostClassifier(loss=MarginSoftmax()))
    grid = {
        "shareboostclassifier__n_features_to_select": [1, 2],
        "shareboostclassifier__loss__margin": [0.5, 1.0],
        "shareboostclassifier__pool": [None, Columns(groups=["petal", "petal", "sepal", "sepal"])],
    }
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.9


def test_as_a_selector_in_a_pipeline():
    X, y = iris()
    pipeline = make_pipeline(ShareBoostClassifier(2), StandardScaler(), ShareBoostClassifier())
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.9


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_in_and_out(library):
    X, y = iris()
    frame = X if library == "pandas" else pl.DataFrame(X.to_dict("list"))
    model = ShareBoostClassifier(2).set_output(transform=library).fit(frame, y)
    found = model.transform(frame)
    kept = [name for name, used in zip(X.columns, model.get_support(), strict=True) if used]
    assert isinstance(found, pd.DataFrame if library == "pandas" else pl.DataFrame)
    assert list(found.columns) == kept == list(model.get_feature_names_out())
    assert list(model.feature_names_in_) == list(X.columns)
    assert np.array_equal(model.predict(frame), ShareBoostClassifier(2).fit(X, y).predict(X))


def test_sample_weight_is_routed():
    X, y = load_iris(return_X_y=True)
    weight = np.where(y == 2, 0.0, 1.0)  # class 2 does not count
    with sklearn.config_context(enable_metadata_routing=True):
        model = ShareBoostClassifier(2).set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, model).fit(X, y, sample_weight=weight)
    assert set(pipeline.predict(X)) == {0, 1}
