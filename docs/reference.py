"""The page of the reference: every public class and function, from the names that rooms export."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from pathlib import Path
from types import ModuleType

import mixnorm

PAGE = Path(__file__).with_name("api.rst")

#: Titles of rooms, in the order of the page. All other rooms follow under their names.
TITLES = {
    "mixnorm.estimators": "Estimators",
    "mixnorm.advice": "Which norm",
    "mixnorm.bounds": "Bounds",
    "mixnorm.display": "Plots and reports",
    "mixnorm.storage": "Model files",
    "mixnorm.data": "Data larger than memory",
    "mixnorm.tables": "Tables",
    "mixnorm.norms": "Norms",
    "mixnorm.losses": "Losses",
    "mixnorm.kernels": "Kernels",
    "mixnorm.pools": "Pools",
    "mixnorm.models": "Models",
    "mixnorm.engines.greedy": "Engine: greedy",
    "mixnorm.engines.penalties": "Penalties of the greedy engine",
    "mixnorm.engines.proximal": "Engine: proximal",
    "mixnorm.engines.multikernel": "Engine: kernel weights",
    "mixnorm.engines.sparse_kernels": "Engine: a few kernels out of many",
    "mixnorm.engines.dual": "Engine: dual",
    "mixnorm.engines.tensor": "Tensor kernels as the dual engine takes them",
    "mixnorm.testing": "Checks for objects of your own",
    "mixnorm.datasets": "Data sets",
}
#: Rooms whose names users import from ``mixnorm`` itself, where it has them.
FROM_THE_TOP = ("mixnorm.estimators", "mixnorm.display", "mixnorm.storage")
#: Rooms that are programs, not names to import.
PROGRAMS = ("mixnorm.cli",)


def rooms() -> list[ModuleType]:
    """Return the modules that export names, in the order of the page."""
    packages = pkgutil.walk_packages(mixnorm.__path__, "mixnorm.")
    names = [*TITLES, *(item.name for item in packages if item.ispkg)]
    names = [name for name in dict.fromkeys(names) if name not in PROGRAMS]
    found = [importlib.import_module(name) for name in names]
    return [module for module in found if getattr(module, "__all__", None)]


def exported(room: ModuleType) -> dict[str, object]:
    """Return the classes and functions that a room exports: classes first."""
    values = {name: getattr(room, name) for name in sorted(room.__all__)}
    classes = {name: value for name, value in values.items() if inspect.isclass(value)}
    functions = {name: value for name, value in values.items() if inspect.isfunction(value)}
    return classes | functions


def entries() -> dict[str, list[str]]:
    """Return for each room the full names to list; each object is listed once."""
    found: dict[str, list[str]] = {}
    listed: set[int] = set()
    for room in rooms():
        here = found.setdefault(room.__name__, [])
        for name, value in exported(room).items():
            if id(value) in listed:
                continue
            listed.add(id(value))
            top = room.__name__ in FROM_THE_TOP and name in mixnorm.__all__
            here.append(f"mixnorm.{name}" if top else f"{room.__name__}.{name}")
    return {room: names for room, names in found.items() if names}


def page() -> str:
    """Return the page in reStructuredText."""
    parts = ["Reference\n=========\n"]
    for room, names in entries().items():
        title = TITLES.get(room, f"Inside: {room}")
        sentence = (importlib.import_module(room).__doc__ or "").strip().split("\n")[0]
        names = "\n".join(f"   {name}" for name in names)
        parts.append(f"{title}\n{'-' * len(title)}\n\n{sentence}\n")
        parts.append(f".. autosummary::\n   :toctree: generated\n\n{names}\n")
    title = "Errors and warnings"
    parts.append(f"{title}\n{'-' * len(title)}\n")
    parts.append(".. automodule:: mixnorm.exceptions\n   :members:\n")
    return "\n".join(parts)


def write() -> None:
    """Write the page, if it has changed."""
    text = page()
    if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        PAGE.write_text(text, encoding="utf-8")
