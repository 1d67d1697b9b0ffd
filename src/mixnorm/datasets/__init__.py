"""Data sets: stored real ones, and the synthetic families of the papers."""

from mixnorm.datasets._load import load
from mixnorm.datasets._synthetic import make_redundant_bits, make_shared_bits

__all__ = ["load", "make_redundant_bits", "make_shared_bits"]
