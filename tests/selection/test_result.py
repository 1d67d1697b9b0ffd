"""What a search found, under scikit-learn's names."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

from mixnorm.selection import SearchResult


def result(**others):
    scores = {"score": np.array([[0.5, 0.9, 0.9], [0.7, 0.9, 0.9]])}
    params = [{"C": 1.0}, {"C": 2.0, "norm": "l2"}, {"C": 3.0}]
    return SearchResult.of(params, scores, np.zeros(3, np.intp), {}, best_index=1, **others)


def test_the_keys_are_those_of_scikit_learn():
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30.0)
    theirs = GridSearchCV(Ridge(), {"alpha": [1.0, 2.0]}, cv=3).fit(X, y).cv_results_
    scores = np.stack([theirs[f"split{fold}_test_score"] for fold in range(3)])
    ours = SearchResult.of(theirs["params"], {"score": scores}, np.zeros(2, np.intp), {}).cv_results
    assert {name for name in theirs if "time" not in name} <= set(ours)
    for name in ("mean_test_score", "std_test_score", "rank_test_score"):
        np.testing.assert_allclose(ours[name], theirs[name])
    assert ours["params"] == theirs["params"]
    assert ours["param_alpha"].tolist() == theirs["param_alpha"].tolist()


def test_several_metrics_have_columns_of_their_own():
    scores = {"loss": np.zeros((2, 1)), "error": np.ones((2, 1))}
    found = SearchResult.of([{}], scores, np.zeros(1, np.intp), {})
    assert found.cv_results["mean_test_error"].tolist() == [1.0]
    assert found.scores("loss").shape == (2, 1)
    assert {"standard_error_loss", "standard_error_error"} <= found.cv_results.keys()


def test_the_only_score_has_the_standard_error_without_a_name():
    np.testing.assert_allclose(result().cv_results["standard_error"], [0.1, 0.0, 0.0], atol=1e-15)


def test_ranks_and_the_choice():
    found = result()
    assert found.cv_results["rank_test_score"].tolist() == [3, 1, 1]
    assert (found.best_params, found.best_score) == ({"C": 2.0, "norm": "l2"}, 0.9)
    assert found.cv_results["param_norm"].tolist() == [None, "l2", None]


def test_a_candidate_without_scores_comes_last():
    scores = np.array([[np.nan, 0.5], [np.nan, 0.6]])
    found = SearchResult.of([{}, {}], {"score": scores}, np.zeros(2, np.intp), {})
    assert found.cv_results["rank_test_score"].tolist() == [2, 1]
    assert np.isnan(found.cv_results["std_test_score"][0])


@pytest.mark.parametrize("index", [-1, 3])
def test_a_stored_result_has_a_choice(index):
    with pytest.raises(ValueError, match="best_index_ must be the row of a candidate"):
        replace(result(), best_index=index)._check_stored()


def test_a_stored_result_has_full_columns():
    found = result()
    found._check_stored()
    with pytest.raises(ValueError, match="an entry for every candidate"):
        replace(found, cv_results=found.cv_results | {"more": [1]})._check_stored()
    less = {name: column for name, column in found.cv_results.items() if name != "params"}
    with pytest.raises(ValueError, match="the columns params and mean_test_score"):
        replace(found, cv_results=less)._check_stored()
