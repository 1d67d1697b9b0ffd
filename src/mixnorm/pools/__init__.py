"""Pools: where the columns that the greedy engine chooses come from."""

from mixnorm.pools._boxes import Boxes
from mixnorm.pools._columns import Columns, working_dtype
from mixnorm.pools._cost import Cost
from mixnorm.pools._kernels import KernelPool
from mixnorm.pools._pieces import Pieces
from mixnorm.pools._products import Products
from mixnorm.pools._stumps import Stumps
from mixnorm.pools._union import Union

__all__ = [
    "Boxes",
    "Columns",
    "Cost",
    "KernelPool",
    "Pieces",
    "Products",
    "Stumps",
    "Union",
    "working_dtype",
]
