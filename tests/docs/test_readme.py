"""The README's example runs as it stands."""

import re
from pathlib import Path

import pytest

from mixnorm.advice import compare

README = Path(__file__).parents[2] / "README.md"


def test_readme_starts_with_the_two_commands():
    """Under the title and one sentence."""
    lines = README.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# mixnorm"
    assert [line.split("#")[0].strip() for line in lines[5:7]] == ["make demo", "make test"]


def test_readme_example_runs(monkeypatch):
    monkeypatch.setattr(compare, "_COMPARISON", compare.ComparisonSettings(most_cuts=1))
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.M | re.S)
    assert blocks, "the README should show how the package is used"
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), names)
    assert len(names["model"].selected_) == 20
    assert len(names["small"].selected_) == 8


@pytest.mark.parametrize("target", re.findall(r"\]\(([\w./]+)\)", README.read_text("utf-8")))
def test_readme_links_exist(target):
    assert (README.parent / target).exists()
