"""Kernels: functions of two rows, banks of them, and their matrices.

Open ``functions/kernels.py`` first, then ``banks/bank.py``; ``grams`` has the matrices, ``tensor``
functions of several rows. The room imports no other.
"""

from mixnorm.kernels.banks.bank import KernelBank, gaussian_bank
from mixnorm.kernels.banks.fitted import FittedBank
from mixnorm.kernels.functions.base import Kernel
from mixnorm.kernels.functions.kernels import (
    ChiSquaredKernel,
    FunctionKernel,
    GaussianKernel,
    LaplacianKernel,
    LinearKernel,
    PolynomialKernel,
)
from mixnorm.kernels.functions.names import as_kernel, register_kernel
from mixnorm.kernels.grams.base import Grams
from mixnorm.kernels.grams.clip import clip_negative
from mixnorm.kernels.grams.factors import FactorGrams
from mixnorm.kernels.grams.geometry import KernelGeometry, kernel_geometry
from mixnorm.kernels.grams.sketch import Sketch, exact_factor, pivoted_factor
from mixnorm.kernels.grams.stack import KernelStack
from mixnorm.kernels.grams.tails import tail_sums
from mixnorm.kernels.tensor.expansions import FeatureExpansion, PairExpansion, TensorExpansion
from mixnorm.kernels.tensor.kernels import (
    ExponentialTensorKernel,
    FeatureTensorKernel,
    PolynomialTensorKernel,
    PowerSeriesTensorKernel,
    TensorKernel,
)

__all__ = [
    "ChiSquaredKernel",
    "ExponentialTensorKernel",
    "FactorGrams",
    "FeatureExpansion",
    "FeatureTensorKernel",
    "FittedBank",
    "FunctionKernel",
    "GaussianKernel",
    "Grams",
    "Kernel",
    "KernelBank",
    "KernelGeometry",
    "KernelStack",
    "LaplacianKernel",
    "LinearKernel",
    "PairExpansion",
    "PolynomialKernel",
    "PolynomialTensorKernel",
    "PowerSeriesTensorKernel",
    "Sketch",
    "TensorExpansion",
    "TensorKernel",
    "as_kernel",
    "clip_negative",
    "exact_factor",
    "gaussian_bank",
    "kernel_geometry",
    "pivoted_factor",
    "register_kernel",
    "tail_sums",
]
