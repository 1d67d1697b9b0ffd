"""The package as a whole: its names, and what importing it costs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import mixnorm


def run(code: str) -> str:
    """Run code in a fresh interpreter and return what it printed."""
    result = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_all_is_sorted_and_resolves():
    assert list(mixnorm.__all__) == sorted(set(mixnorm.__all__))
    for name in mixnorm.__all__:
        assert getattr(mixnorm, name) is not None
    assert dir(mixnorm) == mixnorm.__all__


def test_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = mixnorm.nothing


def test_names_are_documented():
    for name in mixnorm.__all__:
        if name != "__version__":
            assert getattr(mixnorm, name).__doc__, name


def test_rooms_have_sorted_names():
    rooms = ("datasets", "display", "engines", "estimators", "exceptions", "losses", "norms")
    for room in (*rooms, "pools", "selection", "storage", "tables", "testing"):
        module = getattr(mixnorm, room)
        names = list(getattr(module, "__all__", []))
        assert names == sorted(names, key=lambda name: (not name.isupper(), name)), room
        for name in names:
            assert hasattr(module, name), f"{room}.{name}"


def test_typed():
    assert Path(mixnorm.__file__).with_name("py.typed").exists()


def test_right_copy_is_tested():
    installed = os.environ.get("MIXNORM_INSTALLED")
    if not installed:
        pytest.skip("MIXNORM_INSTALLED is unset: not testing a built wheel")
    assert Path(installed).resolve() in Path(mixnorm.__file__).resolve().parents


def test_import_is_light():
    heavy = run(
        "import sys, mixnorm;"
        "print(*sorted({'numpy', 'scipy', 'sklearn', 'numba', 'torch'} & set(sys.modules)))"
    )
    assert heavy == ""


def test_shareboost_on_columns_imports_nothing_optional():
    # scikit-learn imports some of these itself where they are installed.
    imported = run(
        "import sys, sklearn.base; before = set(sys.modules);"
        "optional = {'numba', 'torch', 'matplotlib', 'pandas', 'polars', 'dask', 'onnx'};"
        "from mixnorm import ShareBoostClassifier;"
        "print('imported:', *sorted(optional & (set(sys.modules) - before)));"
        "import numpy as np; X = np.random.default_rng(0).normal(size=(30, 4));"
        "ShareBoostClassifier(2).fit(X, X[:, 1] > 0).predict(X);"
        "print('numba' in sys.modules)"
    )
    assert imported.splitlines() == ["imported:", "False"]
