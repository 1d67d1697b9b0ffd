"""All kinds of inputs, and how often each is drawn."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.fuzz import commands, estimators, parts
from benchmarks.fuzz.verdict import Outcome

Draw = Callable[[np.random.Generator], Outcome]

_RARE = 0.4  # a search takes as long as several fits


def _list_kinds() -> dict[str, tuple[Draw, float]]:
    kinds: dict[str, tuple[Draw, float]] = {
        name: (partial(estimators.draw, name=name), _RARE if name.endswith("CV") else 1.0)
        for name in estimators.NAMES
    }
    return kinds | {
        "norm": (parts.draw_norm, 2.0),
        "loss": (parts.draw_loss, 1.0),
        "kernels": (parts.draw_kernels, 1.0),
        "pool": (parts.draw_pool, 0.5),
        "command": (commands.draw, 0.3),
    }


KINDS = _list_kinds()


def run(seed: int, number: int, kinds: tuple[str, ...] = ()) -> Outcome:
    """Draw and try one input; the same seed and number always give the same input."""
    rng = np.random.default_rng([seed, number])
    names = sorted(kinds or KINDS)
    shares = np.array([KINDS[name][1] for name in names])
    name = names[int(rng.choice(len(names), p=shares / shares.sum()))]
    return KINDS[name][0](rng)
