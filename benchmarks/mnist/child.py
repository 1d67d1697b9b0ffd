"""The measuring process of ``benchmarks.mnist``: one variant of ours, or one peer.

``python -m benchmarks.mnist.child ORDER``; ORDER is JSON, and so is the last line of the output.
Seconds are wall-clock seconds, because several threads or a GPU may work at once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import statistics
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.harness.measure import read_peak_bytes
from benchmarks.harness.version import hash_source
from benchmarks.mnist.data import Images, Upright, add_copies, load, move_to_device, set_upright
from benchmarks.mnist.methods import PEERS
from benchmarks.mnist.variants import SIZES, UPRIGHT_ADDS, Variant, choose_settings

# Sizes of the first fits, whose compilations are not timed.
WARM_ROWS, WARM_FEATURES, WARM_TEMPLATES = 300, 3, 10
# Predictions are repeated REPEATS times, unless the first took LONG seconds.
LONG, REPEATS = 5.0, 3
GIB = 2**30


class Clock:
    """Measures seconds by stage, and waits for the GPU before each reading."""

    def __init__(self, device: str) -> None:
        self.device, self.seconds = device, dict[str, float]()

    def now(self) -> float:
        """Return the seconds after all started work is done."""
        if self.device.startswith("cuda"):
            import torch

            torch.cuda.synchronize()
        return time.perf_counter()

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the seconds of the block to a stage."""
        began = self.now()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + self.now() - began


def measure(
    method: str,
    variant: str,
    *,
    device: str = "cpu",
    holdout: bool = False,
    quick: bool = False,
    threads: int = 2,
) -> dict[str, Any]:
    """Fit one method and return errors, seconds, rates and memory."""
    chosen = choose_settings(variant, quick=quick, device=device)
    if method == "mixnorm":
        with _dispatch_arrays(device):
            return measure_ours(chosen, device, holdout=holdout) | {
                "threads": threads,
                "source": hash_source(),
            }
    return measure_peer(method, chosen, threads, holdout=holdout) | {"threads": threads}


@contextlib.contextmanager
def _dispatch_arrays(device: str) -> Iterator[None]:
    """Let scikit-learn keep arrays of other libraries in their namespace."""
    from sklearn import config_context

    with config_context(array_api_dispatch=True) if device != "cpu" else contextlib.nullcontext():
        yield


# --- ours


def measure_ours(chosen: Variant, device: str, *, holdout: bool) -> dict[str, Any]:
    """Fit ShareBoost stage by stage, and measure its path on the evaluation images."""
    clock = Clock(device)
    with clock.stage("warm-up"):
        warm_up(chosen, device)
    began = clock.now()
    with clock.stage("load"):
        images = move_to_device(load(holdout=holdout, rows=chosen.rows), device)
    with clock.stage("deform"):
        images = add_copies(images, chosen.copies, chosen.deformations, chosen.weight)
    with clock.stage("upright"):
        images = set_upright(images) if chosen.upright else images
    model = fit_model(chosen, images, clock)
    seconds = clock.seconds | {"whole": clock.now() - began}
    return {
        "images": len(images.X),
        "judged": len(images.X_test),
        "features": len(model.path_["loss"]),
        "seconds": seconds,
        "fit_seconds": sum(seconds[stage] for stage in ("templates", "responses", "rounds")),
        "memory": read_peak_bytes() / GIB,
        "settings": dataclasses.asdict(chosen),
        **_describe_gpu(device),
        **measure_path(model, images, clock, chosen.upright),
    }


def fit_model(chosen: Variant, images: Images, clock: Clock) -> Any:
    """Learn templates, then fit; the engine reports the time of the rounds."""
    from mixnorm import GreedyOptions, ShareBoostClassifier
    from mixnorm.pools import Patches

    with clock.stage("templates"):
        rows = images.X.reshape(len(images.X), -1)
        pool = Patches(**chosen.patches).learn(rows, random_state=0)
    model = ShareBoostClassifier(
        chosen.features,
        alpha=chosen.alpha,
        pool=pool,
        random_state=0,
        options=GreedyOptions(tune=chosen.tune),
    )
    with clock.stage("responses"):
        model.fit(images.X, images.y, sample_weight=images.weight)
    rounds = float(np.sum(model.path_["seconds"]))
    clock.seconds["responses"] -= rounds
    clock.seconds["rounds"] = rounds
    return model


def warm_up(chosen: Variant, device: str) -> None:
    """Compile all loops by small fits, with exact responses and with rounded ones."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, (WARM_ROWS, 28, 28), dtype=np.uint8)
    y = np.arange(WARM_ROWS) % 10
    images = move_to_device(Images(X, y, X, y), device)
    images = add_copies(images, min(chosen.copies, 1), chosen.deformations, chosen.weight)
    images = set_upright(images) if chosen.upright else images
    patches = {**chosen.patches, "n_templates": WARM_TEMPLATES}
    small = dataclasses.replace(chosen, features=WARM_FEATURES, patches=patches)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # noise has few distinct patches
        pool = fit_model(small, images, Clock(device)).pool
        atoms = sum(map(len, pool.template_sets())) * int(np.prod(pool.masks))
        # Room for more than two bytes per entry (half precision), and less than four.
        tight = {**patches, "max_gib": 3 * atoms * len(images.X) / GIB}
        model = fit_model(dataclasses.replace(small, patches=tight), images, Clock(device))
        model.predict(images.X_test)
        list(model.staged_predict(images.X_test))


def measure_path(model: Any, images: Images, clock: Clock, upright: bool) -> dict[str, Any]:
    """Return the errors of the whole path in percent, and rates and costs of some models.

    If images are set upright first, rates and costs include that.
    """
    from mixnorm.datasets import deslant_images

    truth = _to_numpy(images.y_test)
    shown = deslant_images(images.X_test) if upright else images.X_test
    predicted = model.staged_predict(shown)
    extra = UPRIGHT_ADDS * int(np.prod(images.X_test.shape[1:])) if upright else 0
    curve = [100 * float(np.mean(_to_numpy(labels) != truth)) for labels in predicted]
    points = []
    for size in sorted({*(size for size in SIZES if size < len(curve)), len(curve)}):
        small = model.truncate(size)
        whole = Upright(small) if upright else small
        points.append(
            {
                "size": size,
                "error": curve[size - 1],
                "multiply_adds": int(small.cost_.multiply_adds) + extra,
                "comparisons": int(small.cost_.comparisons),
                "rate": measure_predictions(whole, images.X_test, clock)[1],
            }
        )
    return {"curve": curve, "points": points}


# --- the others


def measure_peer(method: str, chosen: Variant, threads: int, *, holdout: bool) -> dict[str, Any]:
    """Fit a classifier of another library to the same images as rows."""
    clock, taken = Clock("cpu"), PEERS[method]
    images = add_copies(load(holdout=holdout, rows=chosen.rows), chosen.copies, chosen.deformations)
    X, X_test = taken.rows(images.X), taken.rows(images.X_test)
    model = taken.make(threads)
    with warnings.catch_warnings(), clock.stage("fit"):
        warnings.simplefilter("ignore")
        model.fit(X, images.y)
    memory = read_peak_bytes() / GIB
    labels, rate = measure_predictions(model, X_test, clock)
    found = {
        "images": len(X),
        "judged": len(X_test),
        "fit_seconds": clock.seconds["fit"],
        "error": 100 * float(np.mean(labels != images.y_test)),
        "rate": rate,
        "memory": memory,
    }
    vectors = getattr(model, "n_support_", None)
    return found if vectors is None else found | {"vectors": int(np.sum(vectors))}


def measure_predictions(model: Any, X: Any, clock: Clock) -> tuple[Any, float]:
    """Return labels and images per second; a short first call does not count."""
    spent: list[float] = []
    while len(spent) <= REPEATS and (not spent or spent[0] <= LONG):
        began = clock.now()
        labels = model.predict(X)
        spent.append(clock.now() - began)
    return labels, len(X) / statistics.median(spent[1:] or spent)


def _to_numpy(labels: Any) -> np.ndarray:
    return np.asarray(labels.cpu() if hasattr(labels, "cpu") else labels)


def _describe_gpu(device: str) -> dict[str, Any]:
    """Return the name of the GPU, and its peak memory."""
    if not device.startswith("cuda"):
        return {}
    import torch

    used = torch.cuda.max_memory_allocated() / GIB
    return {"gpu": torch.cuda.get_device_name(), "gpu_memory": used}


if __name__ == "__main__":
    print(json.dumps(measure(**json.loads(sys.argv[1]))))
