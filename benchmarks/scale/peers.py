"""Peers on a Dask cluster: gradient boosting, and logistic regression on all columns.

The peers have their own defaults; their data are Dask arrays that the workers hold in memory.
dask_ml has no multinomial model, so ten binary ones stand in for it. Its solver is ``lbfgs``, the
fastest at 100 columns. ``newton`` takes half as long again, and the default, ``admm``, took eight
times as long for 50,000 rows and 30 columns. The weights are the same.
"""

from __future__ import annotations

import importlib.util
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scale.data import CLASSES, TARGET, Table, read_arrays

XGBOOST, LIGHTGBM, DASK_ML = "xgboost.dask", "lightgbm.dask", "dask_ml"
NEEDS = {XGBOOST: "xgboost", LIGHTGBM: "lightgbm", DASK_ML: "dask_ml"}

Report = Callable[..., None]
#: X, y and the client; returns a function that predicts, and importances of the columns.
Fit = Callable[[Any, Any, Any], tuple[Callable[[np.ndarray], np.ndarray], np.ndarray]]


def is_installed(peer: str) -> bool:
    """Return whether a peer can be imported here."""
    names = (NEEDS[peer], "dask", "distributed")
    return all(importlib.util.find_spec(name) is not None for name in names)


def fit_xgboost(X: Any, y: Any, client: Any) -> tuple[Any, np.ndarray]:
    """Fit xgboost; importances are total gains."""
    from xgboost import XGBClassifier
    from xgboost import dask as boosters

    model = boosters.DaskXGBClassifier(tree_method="hist")
    model.client = client
    model.fit(X, y)
    booster = model.get_booster()
    gains = np.zeros(X.shape[1])
    for name, gain in booster.get_score(importance_type="total_gain").items():
        gains[int(name.removeprefix("f"))] = gain
    local = XGBClassifier()
    local.load_model(booster.save_raw())
    return local.predict, gains


def fit_lightgbm(X: Any, y: Any, client: Any) -> tuple[Any, np.ndarray]:
    """Fit LightGBM; importances are total gains."""
    from lightgbm import DaskLGBMClassifier

    model = DaskLGBMClassifier(client=client, importance_type="gain", verbose=-1)
    model.fit(X, y)
    return model.to_local().predict, np.asarray(model.feature_importances_)


def fit_logistic(X: Any, y: Any, client: Any) -> tuple[Any, np.ndarray]:
    """Fit a logistic regression for each class beside all others.

    ``fit_intercept=True`` would append the column of ones in every iteration, which takes longer
    (15 s instead of 10 s for 200,000 rows). The weights are the same.
    """
    import dask
    from dask import array
    from dask_ml.linear_model import LogisticRegression

    ones = array.ones((X.shape[0], 1), chunks=(X.chunks[0], 1), dtype=X.dtype)
    (Z,) = dask.persist(array.concatenate([X, ones], axis=1).rechunk({1: -1}))
    weights = np.zeros((CLASSES, X.shape[1] + 1))
    for label in range(CLASSES):
        (member,) = dask.persist((y == label).astype(np.int64))
        model = LogisticRegression(solver="lbfgs", fit_intercept=False).fit(Z, member)
        weights[label] = np.ravel(model.coef_)

    def predict(rows: np.ndarray) -> np.ndarray:
        return np.argmax(rows @ weights[:, :-1].T + weights[:, -1], axis=1)

    return predict, np.linalg.norm(weights[:, :-1], axis=0)


FITS: dict[str, Fit] = {XGBOOST: fit_xgboost, LIGHTGBM: fit_lightgbm, DASK_ML: fit_logistic}


def fit_peer(
    report: Report,
    open_cluster: Callable[[int], AbstractContextManager[Any]],
    *,
    peer: str,
    table: dict[str, Any],
    workers: int,
    size: int,
    test_rows: int,
    limit: float,
) -> None:
    """Fit a peer on all columns, and a booster again on the ``size`` of the largest gains.

    The process that started this one stops it soon after ``limit`` seconds.
    """
    place = Table(Path(table["folder"]), table["rows"], table["columns"])
    X_test, y_test = read_arrays(place.test, test_rows)
    with open_cluster(workers) as client, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read_collections(place.test, client, few=True, fit=FITS[peer])
        start = time.perf_counter()
        X, y = read_collections(place.train, client)
        read = time.perf_counter() - start
        report(read_seconds=read, chunks=X.numblocks[0])

        start = time.perf_counter()
        predict, gains = FITS[peer](X, y, client)
        passed = time.perf_counter() - start
        report(
            all_seconds=passed,
            fit_seconds=passed,
            wall=read + passed,
            error_all=100 * float(np.mean(predict(X_test) != y_test)),
        )
        if peer == DASK_ML:
            return
        best = np.sort(np.argsort(-gains, kind="stable")[:size])
        start = time.perf_counter()
        predict, _ = FITS[peer](X[:, best], y, client)
        passed += time.perf_counter() - start
        report(
            fit_seconds=passed,
            wall=read + passed,
            selected=best.tolist(),
            error=100 * float(np.mean(predict(X_test[:, best]) != y_test)),
        )


def read_collections(
    folder: Path, client: Any, *, few: bool = False, fit: Fit | None = None
) -> tuple[Any, Any]:
    """Return a part of a table as Dask arrays that the workers hold, a chunk per row group.

    With ``fit``, the model is fitted once to some rows, to load the code on the workers.
    """
    import dask
    from dask import dataframe
    from distributed import wait

    # Columns and labels come out of one array: Dask may choose other chunks for a column alone.
    frame = dataframe.read_parquet(str(folder), split_row_groups=True)
    names = [name for name in frame.columns if name != TARGET]
    rows = frame[[*names, TARGET]].to_dask_array(lengths=True)
    X, y = rows[:, :-1].astype(np.float32), rows[:, -1].astype(np.int64)
    if few:
        X, y = X[:2000].rechunk((1000, -1)), y[:2000].rechunk(1000)
    X, y = dask.persist(X, y)
    wait([X, y])
    if fit is not None:
        fit(X, y, client)
    return X, y
