"""Estimators: the scikit-learn doors to the engines."""

from mixnorm.estimators._cv import ShareBoostClassifierCV, ShareBoostRegressorCV
from mixnorm.estimators._shareboost import ShareBoostClassifier, ShareBoostRegressor

__all__ = [
    "ShareBoostClassifier",
    "ShareBoostClassifierCV",
    "ShareBoostRegressor",
    "ShareBoostRegressorCV",
]
