"""The command as installed: how quickly it starts, what it imports, completion, the demo."""

import json
import subprocess
import sys

import pytest

from mixnorm.cli.arguments.parser import SHELLS


def run(*words, code=None, **options):
    start = ["-m", "mixnorm"] if code is None else ["-c", code]
    return subprocess.run(
        [sys.executable, *start, *words], check=False, capture_output=True, text=True, **options
    )


@pytest.mark.parametrize("command", [[], ["fit"], ["path"], ["predict"], ["show"], ["demo"]])
def test_help_has_examples(command):
    found = run(*command, "--help")
    assert found.returncode == 0
    assert "usage: mixnorm" in found.stdout
    if command in ([], ["fit"], ["path"], ["predict"]):
        assert "examples:" in found.stdout


def test_help_imports_nothing_heavy():
    heavy = run(
        code="import sys; from mixnorm.cli import main; main(['fit', '--help']);"
        "print(sorted({'numpy', 'scipy', 'sklearn', 'pandas', 'pyarrow', 'rich', 'numba'}"
        " & set(sys.modules)), file=sys.stderr)"
    )
    assert heavy.stderr.strip() == "[]"


def test_version():
    import mixnorm

    assert run("--version").stdout.strip() == f"mixnorm {mixnorm.__version__}"


@pytest.mark.parametrize("shell", SHELLS)
def test_completion(mixnorm, shell):
    pytest.importorskip("shtab")
    found = mixnorm("completion", shell)
    assert found.code == 0
    for word in ("predict", "features", "report"):
        assert word in found.out


def test_bash_takes_the_completion(mixnorm, tmp_path):
    pytest.importorskip("shtab")
    (tmp_path / "c.sh").write_text(mixnorm("completion", "bash").out)
    checked = subprocess.run(["bash", "-n", "c.sh"], check=False, cwd=tmp_path)
    assert checked.returncode == 0


# Runs commands without a package each, which no earlier one has imported.
MISSING = """
import contextlib, io, json, sys
from mixnorm.cli import main

class Missing:
    package = None

    @classmethod
    def find_spec(cls, name, *where):
        if name.partition(".")[0] == cls.package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing)
found = {}
for Missing.package in sys.argv[1:]:
    assert Missing.package not in sys.modules, Missing.package
    words = ["fit", "table.csv", "--target", "b", "--json"]
    words = ["completion", "bash"] if Missing.package == "shtab" else words
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    found[Missing.package] = code, out.getvalue(), err.getvalue()
print(json.dumps(found))
"""


@pytest.mark.parametrize("packages", [["rich", "pyarrow", "shtab"], ["pandas"]], ids=str)
def test_packages_that_are_missing(tmp_path, packages):
    (tmp_path / "table.csv").write_text("a,b\n" + "1,x\n2,y\n" * 20)
    done = run(*packages, code=MISSING, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert list(found) == packages
    for package, (code, out, err) in found.items():
        assert code == 1
        assert package in err
        assert 'pip install "mixnorm[cli]"' in err
        assert len(err.splitlines()) == 1
        if package != "shtab":
            assert 'pip install "mixnorm[cli]"' in json.loads(out)["problem"]


def test_a_reader_that_goes_away(server, titanic, tmp_path):
    words = ("path", titanic, "--target", "Survived", "-q")
    process = server.start(*words, folder=tmp_path)
    assert process.stdout.readline()
    process.stdout.close()
    status, _, err = process.finish()
    assert status == 0, err
    assert b"Traceback" not in err
    assert b"BrokenPipe" not in err


def test_unexpected_errors_are_one_line(mixnorm, titanic, monkeypatch):
    from mixnorm.cli import commands

    def broken(*words, **options):
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(commands, "TableSearch", broken)
    found = mixnorm("path", titanic, "--target", "Survived", "-q")
    assert found.code == 1
    assert found.err.strip() == (
        "mixnorm: unexpected RuntimeError: two lines (MIXNORM_DEBUG=1 shows where)"
    )
    monkeypatch.setenv("MIXNORM_DEBUG", "1")
    with pytest.raises(RuntimeError):
        mixnorm("path", titanic, "--target", "Survived", "-q")


def test_full_memory_and_full_disk(mixnorm, titanic, monkeypatch, tmp_path):
    from mixnorm.cli import commands

    def full(model, place):
        raise OSError(28, "No space left on device", str(place))

    monkeypatch.setattr(commands, "save", full)
    found = mixnorm("fit", titanic, "--target", "Survived", "-k", 1, "--model", "m", "-q")
    assert found.code == 1
    assert found.err.strip() == "mixnorm: m: No space left on device"

    def big(options):
        raise MemoryError

    monkeypatch.setattr(commands, "load_training_data", big)
    found = mixnorm("path", titanic, "--target", "Survived", "-q")
    assert found.code == 1
    assert "not enough memory" in found.err


def test_markup_in_names_is_only_text(mixnorm, tmp_path):
    lines = "".join(f"{row},{'ab'[row % 2]}\n" for row in range(40))
    (tmp_path / "t.csv").write_text("[red]x[/red],[/bold]y\n" + lines)
    found = mixnorm("path", "t.csv", "--target", "[/bold]y", "--number", "[red]x[/red]")
    assert found.code == 0, found.err
    assert "[red]x[/red]" in found.out


def test_demo(mixnorm, tmp_path, monkeypatch):
    found = mixnorm("demo")
    assert found.code == 0
    folder = tmp_path / "mixnorm-demo"
    names = {"digits.csv", "new.csv", "digits.mixnorm", "report.html", "predictions.csv"}
    assert {path.name for path in folder.iterdir()} == names
    assert "$ mixnorm fit mixnorm-demo/digits.csv --target digit --features 20" in found.out
    assert found.out.count("·") == 64 - 20
    monkeypatch.setattr("mixnorm.cli.demo._NUMBER_OF_PIXELS", 2)
    told = mixnorm("demo", "--output", "other", "--json", "-q").json
    assert set(told) == {"folder", "files", "fit", "predict"}
    assert (tmp_path / "other").is_dir()


def test_choices_are_those_of_the_reader():
    # The parser repeats them, because the reader's room takes too long to import.
    from typing import get_args

    from mixnorm.cli.arguments import parser as _parser
    from mixnorm.engines.greedy.rules import RULES
    from mixnorm.tables import Task, sniff

    assert _parser.FORMATS == sniff.FORMATS
    assert get_args(Task) == _parser.TASKS
    assert set(_parser.RULES) == set(RULES)
