"""Pools: where the columns that the greedy engine chooses come from."""

from mixnorm.pools._columns import Columns, working_dtype

__all__ = ["Columns", "working_dtype"]
