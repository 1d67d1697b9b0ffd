"""Pools: where the columns that the greedy engine chooses come from."""

from mixnorm.pools._columns import Columns, working_dtype
from mixnorm.pools._cost import Cost
from mixnorm.pools._stumps import Stumps

__all__ = ["Columns", "Cost", "Stumps", "working_dtype"]
