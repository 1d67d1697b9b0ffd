"""scikit-learn's checks for the learners with tensor kernels."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from mixnorm import (
    TensorKernelClassifier,
    TensorKernelClassifierCV,
    TensorKernelRegressor,
    TensorKernelRegressorCV,
)
from mixnorm.kernels import ExponentialTensorKernel, PowerSeriesTensorKernel

# Weighted rows and repeated rows make the same problem, solved here until rounding.
EXACT = {"tol": 1e-14}


@pytest.mark.filterwarnings("ignore")  # the checks feed data that deserves warnings
@parametrize_with_checks(
    [
        TensorKernelRegressor(**EXACT),
        TensorKernelRegressor(PowerSeriesTensorKernel(), loss="huber", **EXACT),
        TensorKernelRegressor(ExponentialTensorKernel(), random_state=0, **EXACT),
        TensorKernelClassifier(**EXACT),
        TensorKernelClassifier(ExponentialTensorKernel(), loss="hinge", random_state=0),
        TensorKernelRegressorCV(gammas=[1.0, 10.0], cv=3, **EXACT),
        TensorKernelClassifierCV(gammas=[1.0, 10.0], cv=3, **EXACT),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)
