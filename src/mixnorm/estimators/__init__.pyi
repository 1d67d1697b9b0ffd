from mixnorm.estimators.kernels.block_penalty import (
    SMSDMKLClassifier as SMSDMKLClassifier,
)
from mixnorm.estimators.kernels.block_penalty import (
    UFOMKLClassifier as UFOMKLClassifier,
)
from mixnorm.estimators.kernels.greedy import (
    GreedyMKLClassifier as GreedyMKLClassifier,
)
from mixnorm.estimators.kernels.greedy import (
    GreedyMKLRegressor as GreedyMKLRegressor,
)
from mixnorm.estimators.kernels.greedy_search import (
    GreedyMKLClassifierCV as GreedyMKLClassifierCV,
)
from mixnorm.estimators.kernels.greedy_search import (
    GreedyMKLRegressorCV as GreedyMKLRegressorCV,
)
from mixnorm.estimators.kernels.mkl import (
    ConvMKLClassifier as ConvMKLClassifier,
)
from mixnorm.estimators.kernels.mkl import (
    MKLClassifier as MKLClassifier,
)
from mixnorm.estimators.kernels.regressor import MKLRegressor as MKLRegressor
from mixnorm.estimators.kernels.search import (
    ConvMKLClassifierCV as ConvMKLClassifierCV,
)
from mixnorm.estimators.kernels.search import (
    MKLClassifierCV as MKLClassifierCV,
)
from mixnorm.estimators.kernels.search import (
    MKLRegressorCV as MKLRegressorCV,
)
from mixnorm.estimators.kernels.search import (
    SMSDMKLClassifierCV as SMSDMKLClassifierCV,
)
from mixnorm.estimators.kernels.search import (
    UFOMKLClassifierCV as UFOMKLClassifierCV,
)
from mixnorm.estimators.kernels.svc import (
    KernelMulticlassSVC as KernelMulticlassSVC,
)
from mixnorm.estimators.kernels.svc import (
    LinearMulticlassSVC as LinearMulticlassSVC,
)
from mixnorm.estimators.mixed_norm.classifier import MixedNormClassifier as MixedNormClassifier
from mixnorm.estimators.mixed_norm.regressor import MixedNormRegressor as MixedNormRegressor
from mixnorm.estimators.mixed_norm.search import (
    MixedNormClassifierCV as MixedNormClassifierCV,
)
from mixnorm.estimators.mixed_norm.search import (
    MixedNormRegressorCV as MixedNormRegressorCV,
)
from mixnorm.estimators.multitask.learner import MultiTaskLearner as MultiTaskLearner
from mixnorm.estimators.multitask.search import MultiTaskLearnerCV as MultiTaskLearnerCV
from mixnorm.estimators.online.classifier import (
    GroupPerceptron as GroupPerceptron,
)
from mixnorm.estimators.online.classifier import (
    MirrorDescentClassifier as MirrorDescentClassifier,
)
from mixnorm.estimators.online.multitask import OnlineMultiTaskLearner as OnlineMultiTaskLearner
from mixnorm.estimators.online.regressor import MirrorDescentRegressor as MirrorDescentRegressor
from mixnorm.estimators.shareboost.jointboost import JointBoostClassifier as JointBoostClassifier
from mixnorm.estimators.shareboost.learners import (
    ShareBoostClassifier as ShareBoostClassifier,
)
from mixnorm.estimators.shareboost.learners import (
    ShareBoostRegressor as ShareBoostRegressor,
)
from mixnorm.estimators.shareboost.one_vs_rest import OneVsRestGreedy as OneVsRestGreedy
from mixnorm.estimators.shareboost.search import (
    ShareBoostClassifierCV as ShareBoostClassifierCV,
)
from mixnorm.estimators.shareboost.search import (
    ShareBoostRegressorCV as ShareBoostRegressorCV,
)
from mixnorm.estimators.tensor.learners import (
    TensorKernelClassifier as TensorKernelClassifier,
)
from mixnorm.estimators.tensor.learners import (
    TensorKernelRegressor as TensorKernelRegressor,
)
from mixnorm.estimators.tensor.search import (
    TensorKernelClassifierCV as TensorKernelClassifierCV,
)
from mixnorm.estimators.tensor.search import (
    TensorKernelRegressorCV as TensorKernelRegressorCV,
)
from mixnorm.models import MixedNormPath as MixedNormPath
