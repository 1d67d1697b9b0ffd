"""Norms: the geometry of weights of shape ``(n_features, n_outputs)``."""

from mixnorm.norms._base import Norm
from mixnorm.norms._mixed import MixedNorm
from mixnorm.norms._names import as_norm
from mixnorm.norms._schatten import SchattenNorm, TraceNorm

__all__ = ["MixedNorm", "Norm", "SchattenNorm", "TraceNorm", "as_norm"]
