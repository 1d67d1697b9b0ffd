"""Learning with few shared features.

Names are resolved on first use, so that ``import mixnorm`` costs next to
nothing and imports neither NumPy nor scikit-learn.

Examples
--------
>>> import mixnorm
>>> "ShareBoostClassifier" in dir(mixnorm)
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mixnorm._version import __version__

if TYPE_CHECKING:
    from mixnorm import (
        bounds,
        datasets,
        display,
        engines,
        estimators,
        exceptions,
        kernels,
        losses,
        norms,
        pools,
        selection,
        storage,
        tables,
        testing,
    )
    from mixnorm.advise import advise
    from mixnorm.display import ShareBoostPathDisplay
    from mixnorm.estimators import (
        ConvMKLClassifier,
        ConvMKLClassifierCV,
        GreedyMKLClassifier,
        GreedyMKLRegressor,
        GroupPerceptron,
        JointBoostClassifier,
        KernelMulticlassSVC,
        LinearMulticlassSVC,
        MirrorDescentClassifier,
        MirrorDescentRegressor,
        MixedNormClassifier,
        MixedNormClassifierCV,
        MixedNormRegressor,
        MixedNormRegressorCV,
        MKLClassifier,
        MKLClassifierCV,
        MKLRegressor,
        MKLRegressorCV,
        MultiTaskLearner,
        MultiTaskLearnerCV,
        OneVsRestGreedy,
        OnlineMultiTaskLearner,
        ShareBoostClassifier,
        ShareBoostClassifierCV,
        ShareBoostRegressor,
        ShareBoostRegressorCV,
        SMSDMKLClassifier,
        SMSDMKLClassifierCV,
        TensorKernelClassifier,
        TensorKernelClassifierCV,
        TensorKernelRegressor,
        TensorKernelRegressorCV,
        UFOMKLClassifier,
        UFOMKLClassifierCV,
    )
    from mixnorm.storage import load, save

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
    "ShareBoostPathDisplay",
    "ShareBoostRegressor",
    "ShareBoostRegressorCV",
    "TensorKernelClassifier",
    "TensorKernelClassifierCV",
    "TensorKernelRegressor",
    "TensorKernelRegressorCV",
    "UFOMKLClassifier",
    "UFOMKLClassifierCV",
    "__version__",
    "advise",
    "bounds",
    "datasets",
    "display",
    "engines",
    "estimators",
    "exceptions",
    "kernels",
    "load",
    "losses",
    "norms",
    "pools",
    "save",
    "selection",
    "storage",
    "tables",
    "testing",
]

# Public names that live in a room; every other lazy name is a room itself.
_HOMES = {
    "ConvMKLClassifier": "estimators",
    "ConvMKLClassifierCV": "estimators",
    "GreedyMKLClassifier": "estimators",
    "GreedyMKLRegressor": "estimators",
    "GroupPerceptron": "estimators",
    "JointBoostClassifier": "estimators",
    "KernelMulticlassSVC": "estimators",
    "LinearMulticlassSVC": "estimators",
    "MKLClassifier": "estimators",
    "MKLClassifierCV": "estimators",
    "MKLRegressor": "estimators",
    "MKLRegressorCV": "estimators",
    "MirrorDescentClassifier": "estimators",
    "MirrorDescentRegressor": "estimators",
    "MixedNormClassifier": "estimators",
    "MixedNormClassifierCV": "estimators",
    "MixedNormRegressor": "estimators",
    "MixedNormRegressorCV": "estimators",
    "MultiTaskLearner": "estimators",
    "MultiTaskLearnerCV": "estimators",
    "OneVsRestGreedy": "estimators",
    "OnlineMultiTaskLearner": "estimators",
    "SMSDMKLClassifier": "estimators",
    "SMSDMKLClassifierCV": "estimators",
    "ShareBoostClassifier": "estimators",
    "ShareBoostClassifierCV": "estimators",
    "ShareBoostPathDisplay": "display",
    "ShareBoostRegressor": "estimators",
    "ShareBoostRegressorCV": "estimators",
    "TensorKernelClassifier": "estimators",
    "TensorKernelClassifierCV": "estimators",
    "TensorKernelRegressor": "estimators",
    "TensorKernelRegressorCV": "estimators",
    "UFOMKLClassifier": "estimators",
    "UFOMKLClassifierCV": "estimators",
    "load": "storage",
    "save": "storage",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _HOMES:
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    else:
        value = import_module(f"{__name__}.{name}")
    globals()[name] = value  # the next lookup does not come here
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
