"""The rooms of the package: what they import from one another, and how full their folders are."""

import ast
from pathlib import Path

import pytest

import mixnorm

ROOT = Path(mixnorm.__file__).parent
# Modules that users import by their own name; everything else of another room comes from a package.
OFFERED = {"mixnorm.engines.penalties", "mixnorm.engines.tensor", "mixnorm.engines.mirror.layout"}
# Folders that hold at most so many modules each.
FOLDERS, MOST = ("src/mixnorm", "tests", "benchmarks"), 16


def room_of(name: str) -> str:
    """Return the room that a module or a name belongs to."""
    return [*name.split("."), ""][1]


def is_module_in_room(name: str) -> bool:
    """Tell whether a name is a module inside a room, and not a package or what a package offers."""
    path = ROOT.joinpath(*name.split(".")[1:])
    return path.parent != ROOT and path.with_suffix(".py").is_file() and name not in OFFERED


def imported_names(source: str) -> set[str]:
    """Return what a file imports: modules, and the names taken from them."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.module, "imports name the package in full"
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {name for name in found if name.startswith("mixnorm.")}


def is_private(name: str) -> bool:
    """Tell whether a name goes through a package that its own room keeps for itself."""
    return any(part in ("_core", "_common") for part in name.split("."))


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_from_other_rooms_name_packages(path):
    room = path.relative_to(ROOT).parts[0]
    others = {name for name in imported_names(path.read_text()) if room_of(name) != room}
    assert not sorted(name for name in others if is_module_in_room(name) or is_private(name))


def test_modules_are_told_from_packages():
    source = (
        "import mixnorm.pools.columns\nfrom mixnorm.engines import greedy, tensor\n"
        "from mixnorm.losses.names import JOINT\nfrom mixnorm._array import namespace\n"
        "from mixnorm import pools\nfrom mixnorm.engines.mirror import rows_jit\n"
    )
    modules = {name for name in imported_names(source) if is_module_in_room(name)}
    assert modules == {
        "mixnorm.pools.columns", "mixnorm.losses.names", "mixnorm.engines.mirror.rows_jit",
    }  # fmt: skip


@pytest.mark.parametrize("top", FOLDERS)
def test_no_folder_is_too_full(top):
    root = Path(__file__).parent.parent / top
    folders = [root, *(path for path in root.rglob("*") if path.is_dir())]
    counts = {str(folder): len(list(folder.glob("*.py"))) for folder in folders}
    assert not {folder: n for folder, n in counts.items() if n > MOST}


@pytest.mark.parametrize(
    "path", sorted(ROOT.rglob("__init__.py")), ids=lambda p: str(p.relative_to(ROOT))
)
def test_packages_say_what_they_are_for(path):
    doc = ast.get_docstring(ast.parse(path.read_text())) or ""
    if path.parent == ROOT:
        assert doc
        return
    lines = [line for line in doc.splitlines() if line.strip()]
    assert "Open ``" in doc
    assert "import" in doc
    assert len(lines) <= 5
