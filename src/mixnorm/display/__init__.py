"""Plots; matplotlib is imported only when something is drawn."""

from mixnorm.display._path import ShareBoostPathDisplay

__all__ = ["ShareBoostPathDisplay"]
