"""``python -m benchmarks``: one folder for every command, and packages that import nothing."""

import ast
from pathlib import Path

import pytest

from benchmarks.__main__ import __file__ as place
from benchmarks.__main__ import find_packages, main

FOLDERS = sorted(path.parent for path in Path(place).parent.glob("*/__init__.py"))


def test_every_folder_is_a_command():
    names = {folder.name.replace("_", "-") for folder in FOLDERS}
    assert set(find_packages()) == names - {"harness"}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_packages_import_nothing(folder):
    (only,) = ast.parse((folder / "__init__.py").read_text()).body
    assert isinstance(only, ast.Expr)


@pytest.mark.parametrize("name", find_packages())
def test_help(name, capsys):
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert f"benchmarks {name}" in capsys.readouterr().out
