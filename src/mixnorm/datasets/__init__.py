"""Data sets: stored real ones, synthetic families of the papers, and deformed images."""

from mixnorm.datasets._deform import deform_images
from mixnorm.datasets._load import load
from mixnorm.datasets._synthetic import make_redundant_bits, make_shared_bits

__all__ = ["deform_images", "load", "make_redundant_bits", "make_shared_bits"]
