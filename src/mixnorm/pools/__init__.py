"""Pools: where the columns that the greedy engine chooses come from."""

from typing import TYPE_CHECKING, Any

from mixnorm.pools._boxes import Boxes
from mixnorm.pools._columns import Columns, scale_name, working_dtype
from mixnorm.pools._cost import Cost
from mixnorm.pools._curvature import Curvature, capped_gain
from mixnorm.pools._patches import Patches
from mixnorm.pools._pieces import Pieces
from mixnorm.pools._products import Products
from mixnorm.pools._stumps import Stumps
from mixnorm.pools._union import Union

if TYPE_CHECKING:
    from mixnorm.pools._kernels import KernelPool

__all__ = [
    "Boxes",
    "Columns",
    "Cost",
    "Curvature",
    "KernelPool",
    "Patches",
    "Pieces",
    "Products",
    "Stumps",
    "Union",
    "capped_gain",
    "scale_name",
    "working_dtype",
]


def __getattr__(name: str) -> Any:
    if name != "KernelPool":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from mixnorm.pools._kernels import KernelPool  # whoever chooses columns needs no kernels

    return KernelPool
