"""Options of numba for functions without wrappers, which take a fifth of the compile time."""

from __future__ import annotations

from typing import Any

#: For functions that Python calls: nobody calls them from C.
ENTRY: dict[str, Any] = {"no_cfunc_wrapper": True}
#: For functions that only other compiled functions call.
INNER: dict[str, Any] = {"no_cfunc_wrapper": True, "no_cpython_wrapper": True}
