"""Kernels: functions of two rows, banks of them, and their matrices."""

from mixnorm.kernels._bank import KernelBank, gaussian_bank
from mixnorm.kernels._base import Kernel
from mixnorm.kernels._clip import clip_negative
from mixnorm.kernels._expansions import FeatureExpansion, PairExpansion, TensorExpansion
from mixnorm.kernels._factors import FactorGrams
from mixnorm.kernels._fitted import FittedBank
from mixnorm.kernels._functions import (
    ChiSquaredKernel,
    FunctionKernel,
    GaussianKernel,
    LaplacianKernel,
    LinearKernel,
    PolynomialKernel,
)
from mixnorm.kernels._geometry import KernelGeometry, kernel_geometry
from mixnorm.kernels._grams import Grams
from mixnorm.kernels._names import as_kernel, register_kernel
from mixnorm.kernels._sketch import Sketch, exact_factor, pivoted_factor
from mixnorm.kernels._stack import KernelStack
from mixnorm.kernels._tails import tail_sums
from mixnorm.kernels._tensor import (
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
