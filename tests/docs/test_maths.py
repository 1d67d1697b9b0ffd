"""Equations that docstrings and pages cite exist, and every label is one equation's only."""

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LABEL = re.compile(r"^\s*:label: (\S+)$", re.MULTILINE)
CITATION = re.compile(r":eq:`([^`<>]+)`")
#: Where docstrings, comments and pages cite equations.
FOLDERS = [ROOT / "src", ROOT / "docs", ROOT / "examples"]


def labels():
    """Count the labels of all equations."""
    pages = sorted((ROOT / "docs" / "maths").glob("*.rst"))
    return Counter(name for page in pages for name in LABEL.findall(page.read_text("utf-8")))


def citing():
    """Return the files that cite equations, with what they cite."""
    files = [path for folder in FOLDERS for path in folder.rglob("*")]
    files = [path for path in files if path.suffix in (".py", ".rst")]
    cited = {path: CITATION.findall(path.read_text("utf-8")) for path in sorted(files)}
    return {str(path.relative_to(ROOT)): names for path, names in cited.items() if names}


def test_labels_are_unique():
    assert [name for name, count in labels().items() if count > 1] == []


def test_cited_equations_exist():
    known, cited = labels(), citing()
    assert "src/mixnorm/engines/proximal/problem.py" in cited
    missing = [(path, name) for path, names in cited.items() for name in names if name not in known]
    assert missing == []


@pytest.mark.parametrize("engine", ["_core", "dual", "mirror", "proximal"])
def test_engines_cite_their_derivations(engine):
    """Most files of an engine rest on an equation; the others hold no mathematics."""
    room = f"src/mixnorm/engines/{engine}/"
    files = list((ROOT / room).glob("*.py"))
    assert sum(path.startswith(room) for path in citing()) >= len(files) / 3
