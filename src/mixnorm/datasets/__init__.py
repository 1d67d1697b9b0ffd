"""Data sets: real data, synthetic families, and images that are deformed or set upright.

Open ``loading.py`` first. The room imports no other.
"""

from mixnorm.datasets.deform import deform_images
from mixnorm.datasets.deslant import deslant_images
from mixnorm.datasets.loading import load
from mixnorm.datasets.synthetic import make_redundant_bits, make_shared_bits

__all__ = ["deform_images", "deslant_images", "load", "make_redundant_bits", "make_shared_bits"]
