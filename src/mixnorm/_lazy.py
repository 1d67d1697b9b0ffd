"""Names of a package that are imported on first use.

The stub file ``__init__.pyi`` beside a package is the only list of its names: type checkers read
it, and so does :func:`attach`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

_SOURCE_ROOT = Path(__file__).parent.parent


def attach(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` for a package with a stub file."""
    homes = _homes(package)

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if homes[name] == package:  # a subpackage
            value = import_module(f"{package}.{name}")
        else:
            value = getattr(import_module(homes[name]), name)
        setattr(import_module(package), name, value)  # so that Python calls this once per name
        return value

    return get, lambda: sorted(homes), sorted(homes)


def _homes(package: str) -> dict[str, str]:
    """Return the names in the stub of a package, and the module that each comes from."""
    stub = _SOURCE_ROOT.joinpath(*package.split("."), "__init__.pyi")
    homes: dict[str, str] = {}
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [alias.name for alias in node.names]
            if names == ["*"]:
                homes |= dict.fromkeys(_homes(node.module), node.module)
            else:
                homes |= dict.fromkeys(names, node.module)
    return homes
