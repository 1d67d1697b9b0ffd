"""Array namespaces: the one place that knows which array library is in use."""

from __future__ import annotations

from typing import Any

import array_api_compat
import array_api_compat.numpy
import numpy as np


def namespace(array: Any) -> Any:
    """Return the array API namespace of ``array``.

    Examples
    --------
    >>> import numpy as np
    >>> namespace(np.zeros(3)).__name__.split(".")[-1]
    'numpy'
    """
    if type(array) is np.ndarray:  # the common case, and asked for in every inner loop
        return array_api_compat.numpy
    return array_api_compat.array_namespace(array)


def to_numpy(array: Any) -> np.ndarray:
    """Return ``array`` as a NumPy array, copied to the host only when it must be."""
    if isinstance(array, np.ndarray):
        return array
    if array_api_compat.is_torch_array(array):
        return np.asarray(array.detach().cpu().numpy())
    return np.asarray(array)


def is_numpy(array: Any) -> bool:
    """Tell whether ``array`` is a NumPy array (memory maps included)."""
    return isinstance(array, np.ndarray)


def device_of(array: Any) -> Any:
    """Return the device ``array`` lives on."""
    return array_api_compat.device(array)


def epsilon(array: Any) -> float:
    """Return the machine epsilon of the floating dtype of ``array``."""
    return float(namespace(array).finfo(array.dtype).eps)


def exponential(array: Any) -> Any:
    """Return the exponential of ``array``, written over it where the namespace allows."""
    if is_numpy(array):
        return np.exp(array, out=array)
    return namespace(array).exp(array)
