from types import SimpleNamespace

import pytest
import sklearn.datasets


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Two empty folders in place of the real ones, and no network."""
    data, cache = tmp_path / "data", tmp_path / "cache"
    data.mkdir()
    monkeypatch.setenv("MIXNORM_DATA", str(data))
    monkeypatch.setenv("MIXNORM_CACHE", str(cache))

    def refuse(**kwargs):
        raise OSError("no network in tests")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", refuse)
    return SimpleNamespace(data=data, cache=cache)
