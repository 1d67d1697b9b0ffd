"""What tests share: reproducible drawing, and array namespaces other than NumPy."""

import functools
import importlib
import os
import pickle
from multiprocessing.pool import ThreadPool

import joblib
import pytest
from hypothesis import settings
from joblib.externals.loky.backend.reduction import dumps
from joblib.parallel import ThreadingBackend

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


class CopyingBackend(ThreadingBackend):
    """Runs jobs of joblib one at a time in a thread, on copies made as for a process."""

    supports_sharedmem = False

    def _get_pool(self):
        self._pool = self._pool or ThreadPool(1)
        return self._pool

    def submit(self, func, callback=None):
        sent = dumps(func)
        return super().submit(lambda: pickle.loads(dumps(pickle.loads(sent)())), callback)


@pytest.fixture
def copied_jobs():
    """Let parallel jobs work on copies of what they are given, and return copies.

    So they do in processes, which take seconds to start; few tests start real ones.
    """
    with joblib.parallel_config(backend=CopyingBackend()):
        yield


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
