"""What tests share: reproducible drawing, and array namespaces other than NumPy."""

import functools
import importlib
import os

import pytest
from hypothesis import settings

# scikit-learn's array API dispatch asks for this, and SciPy reads it when it is first imported.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

# The same examples in every run, and none fails for being slow on a busy machine.
settings.register_profile("reproducible", derandomize=True, deadline=None, max_examples=50)
settings.load_profile("reproducible")


@pytest.fixture(params=["array_api_strict", "torch"])
def xp(request):
    """The namespace of another array library; skipped where that is not installed."""
    pytest.importorskip(request.param)
    if request.param == "torch":
        return importlib.import_module("array_api_compat.torch")
    return importlib.import_module(request.param)


def pytest_collection_modifyitems(items):
    """Skip the checks of arrays on a GPU where there is none, though torch may come with CUDA."""
    for item in items:
        if "check_array_api" in item.name and "cuda" in item.name and not has_cuda():
            item.add_marker(pytest.mark.skip(reason="there is no GPU that torch can use"))


@functools.cache
def has_cuda():
    """Tell whether torch is there, and a GPU that it can use."""
    try:
        return importlib.import_module("torch").cuda.is_available()
    except ImportError:
        return False
