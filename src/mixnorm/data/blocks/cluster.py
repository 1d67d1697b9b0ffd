"""The executor that runs tasks on a Dask cluster."""

from __future__ import annotations

import sys
from typing import Any


def active_client() -> Any:
    """Return the Dask client that is active in this process, or None."""
    # A client can only be active if its package is loaded.
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.default_client()
    except ValueError:
        return None
