"""Estimators: the scikit-learn doors to the engines."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mixnorm.estimators._cv import ShareBoostClassifierCV, ShareBoostRegressorCV
from mixnorm.estimators._shareboost import ShareBoostClassifier, ShareBoostRegressor

if TYPE_CHECKING:
    from mixnorm.estimators._greedy_mkl import GreedyMKLClassifier, GreedyMKLRegressor
    from mixnorm.estimators._jointboost import JointBoostClassifier
    from mixnorm.estimators._kernel_svc import KernelMulticlassSVC, LinearMulticlassSVC
    from mixnorm.estimators._mixed_norm import MixedNormClassifier
    from mixnorm.estimators._mixed_norm_cv import MixedNormClassifierCV, MixedNormRegressorCV
    from mixnorm.estimators._mixed_norm_path import MixedNormPath
    from mixnorm.estimators._mixed_norm_regressor import MixedNormRegressor
    from mixnorm.estimators._mkl import ConvMKLClassifier, MKLClassifier
    from mixnorm.estimators._mkl_cv import (
        ConvMKLClassifierCV,
        MKLClassifierCV,
        MKLRegressorCV,
        SMSDMKLClassifierCV,
        UFOMKLClassifierCV,
    )
    from mixnorm.estimators._mkl_regressor import MKLRegressor
    from mixnorm.estimators._multitask import MultiTaskLearner
    from mixnorm.estimators._multitask_cv import MultiTaskLearnerCV
    from mixnorm.estimators._one_vs_rest import OneVsRestGreedy
    from mixnorm.estimators._online_classifier import GroupPerceptron, MirrorDescentClassifier
    from mixnorm.estimators._online_multitask import OnlineMultiTaskLearner
    from mixnorm.estimators._online_regressor import MirrorDescentRegressor
    from mixnorm.estimators._smsd import SMSDMKLClassifier, UFOMKLClassifier
    from mixnorm.estimators._tensor import TensorKernelClassifier, TensorKernelRegressor
    from mixnorm.estimators._tensor_cv import TensorKernelClassifierCV, TensorKernelRegressorCV

__all__ = [
    "ConvMKLClassifier",
    "ConvMKLClassifierCV",
    "GreedyMKLClassifier",
    "GreedyMKLRegressor",
    "GroupPerceptron",
    "JointBoostClassifier",
    "KernelMulticlassSVC",
    "LinearMulticlassSVC",
    "MKLClassifier",
    "MKLClassifierCV",
    "MKLRegressor",
    "MKLRegressorCV",
    "MirrorDescentClassifier",
    "MirrorDescentRegressor",
    "MixedNormClassifier",
    "MixedNormClassifierCV",
    "MixedNormPath",
    "MixedNormRegressor",
    "MixedNormRegressorCV",
    "MultiTaskLearner",
    "MultiTaskLearnerCV",
    "OneVsRestGreedy",
    "OnlineMultiTaskLearner",
    "SMSDMKLClassifier",
    "SMSDMKLClassifierCV",
    "ShareBoostClassifier",
    "ShareBoostClassifierCV",
    "ShareBoostRegressor",
    "ShareBoostRegressorCV",
    "TensorKernelClassifier",
    "TensorKernelClassifierCV",
    "TensorKernelRegressor",
    "TensorKernelRegressorCV",
    "UFOMKLClassifier",
    "UFOMKLClassifierCV",
]

# Imported on first use: whoever wants one kind of learner need not wait for the others.
_LATE = {
    "ConvMKLClassifier": "_mkl",
    "ConvMKLClassifierCV": "_mkl_cv",
    "GreedyMKLClassifier": "_greedy_mkl",
    "GreedyMKLRegressor": "_greedy_mkl",
    "GroupPerceptron": "_online_classifier",
    "JointBoostClassifier": "_jointboost",
    "KernelMulticlassSVC": "_kernel_svc",
    "LinearMulticlassSVC": "_kernel_svc",
    "MKLClassifier": "_mkl",
    "MKLClassifierCV": "_mkl_cv",
    "MKLRegressor": "_mkl_regressor",
    "MKLRegressorCV": "_mkl_cv",
    "MirrorDescentClassifier": "_online_classifier",
    "MirrorDescentRegressor": "_online_regressor",
    "MixedNormClassifier": "_mixed_norm",
    "MixedNormClassifierCV": "_mixed_norm_cv",
    "MixedNormPath": "_mixed_norm_path",
    "MixedNormRegressor": "_mixed_norm_regressor",
    "MixedNormRegressorCV": "_mixed_norm_cv",
    "MultiTaskLearner": "_multitask",
    "MultiTaskLearnerCV": "_multitask_cv",
    "OneVsRestGreedy": "_one_vs_rest",
    "OnlineMultiTaskLearner": "_online_multitask",
    "SMSDMKLClassifier": "_smsd",
    "SMSDMKLClassifierCV": "_mkl_cv",
    "TensorKernelClassifier": "_tensor",
    "TensorKernelClassifierCV": "_tensor_cv",
    "TensorKernelRegressor": "_tensor",
    "TensorKernelRegressorCV": "_tensor_cv",
    "UFOMKLClassifier": "_smsd",
    "UFOMKLClassifierCV": "_mkl_cv",
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_LATE[name]}"), name)
    globals()[name] = value  # the next lookup does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
