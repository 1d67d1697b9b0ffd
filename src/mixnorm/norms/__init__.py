"""Norms: the geometry of weights of shape ``(n_features, n_outputs)``.

Open ``base.py`` first, then ``mixed.py``. The room imports no other.
"""

from mixnorm.norms.ability import has_ability
from mixnorm.norms.base import Norm, conjugate
from mixnorm.norms.mixed import MixedNorm
from mixnorm.norms.names import as_norm
from mixnorm.norms.schatten import SchattenNorm, Spectral, TraceNorm

__all__ = [
    "MixedNorm",
    "Norm",
    "SchattenNorm",
    "Spectral",
    "TraceNorm",
    "as_norm",
    "conjugate",
    "has_ability",
]
