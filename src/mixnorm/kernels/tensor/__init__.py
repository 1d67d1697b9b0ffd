"""Tensor kernels: functions of several rows, their monomials and expansions.

Open ``kernels.py`` first. It may import ``functions``.
"""

from mixnorm.kernels.tensor.expansions import (
    FeatureExpansion,
    PairExpansion,
    TensorExpansion,
    feature_sums,
    weights_of_sums,
)
from mixnorm.kernels.tensor.gram import PairFactor, drawn_features, pair_factor, tensor_gram
from mixnorm.kernels.tensor.index_sets import multiplicities, multisets
from mixnorm.kernels.tensor.monomials import MonomialList

__all__ = [
    "FeatureExpansion",
    "MonomialList",
    "PairExpansion",
    "PairFactor",
    "TensorExpansion",
    "drawn_features",
    "feature_sums",
    "multiplicities",
    "multisets",
    "pair_factor",
    "tensor_gram",
    "weights_of_sums",
]
