"""Norms: the geometry of weights of shape ``(n_features, n_outputs)``."""

from mixnorm.norms.base import Norm
from mixnorm.norms.mixed import MixedNorm
from mixnorm.norms.names import as_norm
from mixnorm.norms.schatten import SchattenNorm, TraceNorm

__all__ = ["MixedNorm", "Norm", "SchattenNorm", "TraceNorm", "as_norm"]
