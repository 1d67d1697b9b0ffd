"""Array namespaces: the one place that knows which array library is in use."""

from __future__ import annotations

import functools
import math
import numbers
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeGuard

import array_api_compat
import array_api_compat.numpy
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike as NumPyArrayLike
    from scipy.sparse import sparray, spmatrix


class Array(Protocol):
    """An array of a library that follows the array API standard, such as NumPy, torch or CuPy.

    Results of operators are ``Any``, because each library has its own types for them.
    """

    @property
    def dtype(self) -> Any: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def T(self) -> Any: ...
    def __getitem__(self, key: Any, /) -> Any: ...
    def __setitem__(self, key: Any, value: Any, /) -> None: ...
    def __float__(self) -> float: ...
    def __bool__(self) -> bool: ...
    def __neg__(self) -> Any: ...
    def __abs__(self) -> Any: ...
    def __add__(self, other: Any, /) -> Any: ...
    def __radd__(self, other: Any, /) -> Any: ...
    def __sub__(self, other: Any, /) -> Any: ...
    def __rsub__(self, other: Any, /) -> Any: ...
    def __mul__(self, other: Any, /) -> Any: ...
    def __rmul__(self, other: Any, /) -> Any: ...
    def __truediv__(self, other: Any, /) -> Any: ...
    def __rtruediv__(self, other: Any, /) -> Any: ...
    def __pow__(self, other: Any, /) -> Any: ...
    def __matmul__(self, other: Any, /) -> Any: ...
    def __lt__(self, other: Any, /) -> Any: ...
    def __le__(self, other: Any, /) -> Any: ...
    def __gt__(self, other: Any, /) -> Any: ...
    def __ge__(self, other: Any, /) -> Any: ...


#: A sparse matrix or sparse array of SciPy.
SparseMatrix: TypeAlias = "sparray | spmatrix"
#: What users may give as targets, weights or groups: an array, a series, or a list.
ArrayLike: TypeAlias = "Array | NumPyArrayLike"
#: What users may give as ``X``: an array, a data frame, nested lists, or a sparse matrix.
MatrixLike: TypeAlias = "ArrayLike | SparseMatrix"


def namespace(array: object) -> Any:
    """Return the array API namespace of ``array``.

    Examples
    --------
    >>> import numpy as np
    >>> namespace(np.zeros(3)).__name__.split(".")[-1]
    'numpy'
    """
    if type(array) is np.ndarray:  # the common case, and inner loops call this
        return array_api_compat.numpy
    return array_api_compat.array_namespace(array)


def to_numpy(array: object) -> np.ndarray:
    """Return ``array`` as a NumPy array, copied to the host only if it is elsewhere."""
    if isinstance(array, np.ndarray):
        return array
    if not is_foreign(array):
        return np.asarray(array)
    # A tensor that takes part in a gradient, or is on a device, has no ``__array__``.
    if array_api_compat.is_torch_array(array):
        return array.detach().cpu().numpy()
    if array_api_compat.is_cupy_array(array):
        return array.get()
    xp = namespace(array)
    if xp.__name__ == "array_api_strict":  # it simulates devices
        array = array.to_device(xp.Device("CPU_DEVICE"))
    return np.asarray(array)


def is_numpy(array: object) -> TypeGuard[np.ndarray]:
    """Tell whether ``array`` is a NumPy array (memory maps included)."""
    return isinstance(array, np.ndarray)


def is_foreign(array: object) -> TypeGuard[Any]:
    """Tell whether ``array`` is an array of another library than NumPy; SciPy's are not.

    Examples
    --------
    >>> is_foreign([1.0, 2.0])
    False
    """
    if isinstance(array, (np.ndarray, np.generic, float)):
        return False
    return array_api_compat.is_array_api_obj(array)


def is_sparse(X: object) -> TypeGuard[Any]:
    """Tell whether ``X`` is a sparse matrix or a sparse array of SciPy."""
    sparse = sys.modules.get("scipy.sparse")  # nobody can have made one before this is imported
    return sparse is not None and sparse.issparse(X)


def to_dense(X: MatrixLike) -> Any:
    """Return ``X`` as a dense array if it is sparse, and unchanged otherwise.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> to_dense(sp.csr_array([[0.0, 2.0]]))
    array([[0., 2.]])
    """
    return X.toarray() if is_sparse(X) else X


def follow(array: object, like: object, dtype: Any = None) -> Any:
    """Return ``array`` in the namespace and on the device of ``like``, as ``dtype`` if given.

    Where ``like`` is a sparse matrix, None or anything else that is no array, that is NumPy.

    Examples
    --------
    >>> import numpy as np
    >>> follow(np.asarray([1, 2]), np.zeros(3), np.float64)
    array([1., 2.])
    """
    if not is_foreign(like):
        array = to_numpy(array)
        return array if dtype is None else np.asarray(array, dtype=dtype)
    xp, device = namespace(like), device_of(like)
    if is_foreign(array) and namespace(array) is xp:
        array = array_api_compat.to_device(array, device)
    else:  # a copy, since some libraries refuse arrays that are read-only or have negative strides
        array = xp.asarray(np.array(to_numpy(array), order="C"), device=device)
    return array if dtype is None else xp.astype(array, dtype, copy=False)


def device_of(array: Array) -> Any:
    """Return the device of ``array``."""
    return array_api_compat.device(array)


@contextmanager
def quick_products(array: Array) -> Iterator[bool]:
    """Round products of float32 arrays on a GPU to three digits within this context.

    Yields whether ``array`` is such an array; for others nothing changes.
    """
    # "high" multiplies in TF32, several times as fast, where three digits are enough.
    on_gpu = array_api_compat.is_torch_array(array) and array.is_cuda
    if not on_gpu or epsilon(array) < 1e-8:
        yield False
        return
    torch = sys.modules["torch"]
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield True
    finally:
        torch.set_float32_matmul_precision(before)


def is_double(dtype: Any) -> bool:
    """Tell whether ``dtype``, of any namespace, is float64."""
    return str(dtype).endswith("float64")


class FloatLimits(NamedTuple):
    """The limits of a floating dtype."""

    eps: float
    max: float
    smallest_normal: float


def float_limits(array: Array) -> FloatLimits:
    """Return the limits of the floating dtype of ``array``."""
    return _read_limits(namespace(array), array.dtype)


@functools.cache  # inner loops ask, and libraries take microseconds to answer
def _read_limits(xp: Any, dtype: Any) -> FloatLimits:
    info = xp.finfo(dtype)
    return FloatLimits(float(info.eps), float(info.max), float(info.smallest_normal))


def is_real_floating(array: Array) -> bool:
    """Tell whether the dtype of ``array`` is one of real floating numbers."""
    return _is_real_floating(namespace(array), array.dtype)


@functools.cache
def _is_real_floating(xp: Any, dtype: Any) -> bool:
    return bool(xp.isdtype(dtype, "real floating"))


def epsilon(array: Array) -> float:
    """Return the machine epsilon of the floating dtype of ``array``."""
    return float_limits(array).eps


def tiny(array: Array) -> float:
    """Return a small number whose inverse is finite in the dtype of ``array``."""
    return math.sqrt(float_limits(array).smallest_normal)


def exponential(array: Array) -> Any:
    """Return the exponential of ``array``; a NumPy array is overwritten."""
    if is_numpy(array):
        return np.exp(array, out=array)
    return namespace(array).exp(array)


def as_generator(random_state: Any) -> np.random.Generator:
    """Return a random generator for a seed, None or a generator."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    check_seed(random_state, np.random.Generator)
    return np.random.default_rng(random_state)


def check_seed(random_state: Any, generator: type) -> None:
    """Raise unless ``random_state`` is a seed, None or a generator of NumPy of a given type."""
    if random_state is None or isinstance(random_state, generator):
        return
    whole = isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool)
    if not whole or random_state < 0:
        raise ValueError(
            f"random_state={random_state!r} is not a seed. Give a whole number of at least 0, "
            f"None, or a numpy.random.{generator.__name__}."
        )
