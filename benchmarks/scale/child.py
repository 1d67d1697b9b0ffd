"""The measuring process of ``benchmarks.scale``: one fit, or one peer.

``python -m benchmarks.scale.child ORDER``; ORDER is JSON with a ``job`` of ``JOBS`` and its
arguments. Each stage is a line of JSON on the standard output, written as soon as it is finished.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import os
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scale.data import TARGET, Table, read_arrays
from benchmarks.scale.panel import Panel
from benchmarks.scale.watch import Watch

IN_MEMORY, BY_BLOCKS = "memory", "blocks"
WARM_ROWS = 40_000  # enough for the code that only large fits call


def report(**stage: Any) -> None:
    """Report the results of a stage."""
    print(json.dumps(stage), flush=True)


@contextlib.contextmanager
def open_cluster(workers: int) -> Iterator[Any]:
    """Yield the client of a cluster of processes with one thread each; None for no workers."""
    if not workers:
        yield None
        return
    import dask
    from distributed import Client, LocalCluster

    folder = os.path.join(tempfile.gettempdir(), "dask")
    with (
        dask.config.set({"temporary-directory": folder}),
        LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@contextlib.contextmanager
def kill_worker(client: Any, seconds: float | None) -> Iterator[dict[str, Any]]:
    """Kill a worker so many seconds after the start of the block, unless it has ended by then."""
    done: dict[str, Any] = {}
    if seconds is None:
        yield done
        return
    pid = sorted(client.run(os.getpid).values())[0]

    def strike() -> None:
        os.kill(pid, signal.SIGKILL)
        done["killed_after"] = seconds

    timer = threading.Timer(seconds, strike)
    timer.start()
    try:
        yield done
    finally:
        timer.cancel()
        timer.join()


def make_learner(learner: str, size: int, alpha: float) -> Any:
    """Return an estimator with its defaults: ``greedy`` or ``norm``."""
    import mixnorm

    if learner == "greedy":
        return mixnorm.ShareBoostClassifier(size)
    return mixnorm.MixedNormClassifier("l2,1", alpha=alpha)


def describe_model(model: Any) -> dict[str, Any]:
    """Return the features of a model, its training loss, its gap, and a digest of its weights."""
    digest = hashlib.sha256()
    for each in (model.coef_, model.intercept_):
        values = np.ascontiguousarray(each)
        digest.update(values.dtype.str.encode() + values.tobytes())
    found = {"selected": np.asarray(model.selected_).tolist(), "bits": digest.hexdigest()[:16]}
    if hasattr(model, "dual_gap_"):
        return found | {"loss": float(model.objective_), "gap": float(model.dual_gap_)}
    return found | {"loss": float(model.path_["loss"][-1])}


def compute_error(predict: Callable[[Any], Any], X: Any, y: np.ndarray) -> float:
    """Return the share of wrong predictions in percent."""
    return 100 * float(np.mean(np.asarray(predict(X)) != y))


def read_through(folder: Path) -> None:
    """Read files once, so that the page cache has them where there is room."""
    for path in sorted(folder.glob("*.parquet")):
        with path.open("rb", buffering=0) as file:
            while file.read(1 << 24):
                pass


def fit_table(
    table: dict[str, Any],
    learner: str,
    how: str,
    *,
    size: int = 20,
    alpha: float = 0.0,
    memory: str = "4 GiB",
    workers: int = 0,
    kill_after: float | None = None,
    test_rows: int,
) -> None:
    """Fit a table of Parquet files: read into arrays beforehand, or by blocks.

    A first fit of some other rows loads compiled code, here and on the workers.
    """
    import mixnorm

    place = Table(Path(table["folder"]), table["rows"], table["columns"])
    with open_cluster(workers) as client, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the warm-up fit may warn

        def read(folder: Path, rows: int) -> tuple[Any, ...]:
            """Return what ``fit`` takes: arrays, or a table of blocks."""
            if how == IN_MEMORY:
                return read_arrays(folder, rows)
            options = {"memory": memory, "executor": client}
            return (mixnorm.data.read_parquet(str(folder), target=TARGET, **options),)

        start = time.perf_counter()
        make_learner(learner, size, alpha).fit(*read(place.test, min(WARM_ROWS, test_rows)))
        report(first_seconds=time.perf_counter() - start)
        start, model = time.perf_counter(), make_learner(learner, size, alpha)
        given: tuple[Any, ...] = ()
        if how == IN_MEMORY:
            given = read(place.train, place.rows)
        else:
            read_through(place.train)
        report(read_seconds=time.perf_counter() - start)
        gc.collect()  # of the warm-up
        watch = Watch(Path(tempfile.gettempdir()), children=client is not None)
        with kill_worker(client, kill_after) as killed, watch:
            given = given or read(place.train, place.rows)
            model.fit(*given)
        used = 0 if how == IN_MEMORY else int(given[0].bytes_read)
        report(**watch.figures, **killed, bytes_read=used, table_bytes=place.bytes)
        del given
        # The test part is read last, so that it does not count as memory of the fit. A model of
        # Parquet files knows the names of columns, which arrays lack: that is a warning.
        error = compute_error(model.predict, *read_arrays(place.test, test_rows))
        report(**describe_model(model), error=error)


def fit_panel(panel: dict[str, Any], how: str, *, size: int = 100, memory: str = "4 GiB") -> None:
    """Fit a path on a sparse panel that is in memory, as it is or by blocks."""
    import mixnorm

    place = Panel(Path(panel["folder"]), panel["cells"], panel["genes"])
    X_test, y_test = place.read("test")

    def fit(X: Any, y: np.ndarray, size: int) -> Any:
        model = mixnorm.ShareBoostClassifier(size)
        if how == IN_MEMORY:
            return model.fit(X, y)
        return model.fit(mixnorm.data.from_arrays(X, y, memory=memory))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        fit(X_test, y_test, 3)
        report(first_seconds=time.perf_counter() - start)
    X, y = place.read()
    report(stored=int(X.nnz), filled=X.nnz / (X.shape[0] * X.shape[1]))
    with Watch(Path(tempfile.gettempdir())) as watch:
        model = fit(X, y, size)
    report(**watch.figures)
    report(**describe_model(model), error=compute_error(model.predict, X_test, y_test))


def fit_peer(**order: Any) -> None:
    """Fit a peer on a cluster."""
    from benchmarks.scale.peers import fit_peer as carry_out

    carry_out(report, open_cluster, **order)


JOBS: dict[str, Callable[..., None]] = {"table": fit_table, "panel": fit_panel, "peer": fit_peer}


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    JOBS[given.pop("job")](**given)
