"""What tests share: reproducible drawing, and array namespaces other than NumPy."""

import importlib

import pytest
from hypothesis import settings

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
