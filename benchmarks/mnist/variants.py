"""Settings of ``benchmarks.mnist``, chosen on held-out training images (see README.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Variant:
    """How a model is trained: size, ridge, pool and images.

    ``patches`` are the parameters of ``Patches``, and ``deformations`` those of ``deform_images``.
    ``weight`` is the weight of an original image; a copy has weight one. With ``upright``,
    ``deslant_images`` sets images upright first. ``rows`` limits the number of training images.
    ``tune`` is a parameter of the model.
    """

    features: int
    alpha: float
    patches: Mapping[str, Any]
    copies: int = 0
    deformations: Mapping[str, float] = field(default_factory=dict)
    weight: float = 1.0
    upright: bool = False
    tune: int = 0
    rows: int | None = None


# The paper's pool, and pools of several template sizes with wider masks on a finer grid.
PAPER = {"size": 7, "n_templates": 1000, "masks": 16}
GRID = {"masks": 25, "spread": 1.25, "reach": 1.8}
TWO_SIZES = {"size": (5, 8), "n_templates": 1000, **GRID}
FEWER = {**TWO_SIZES, "n_templates": 500}  # tuning makes up for fewer templates, and needs the time
THREE_SIZES = {"size": (5, 7, 10), "n_templates": 800, **GRID}
# Stronger than the mild defaults; even stronger and milder ones were worse.
DEFORMATIONS = {"elastic": 0.85}

VARIANTS = {
    "paper": Variant(266, 1e-6, PAPER),
    "original": Variant(266, 3e-6, THREE_SIZES),
    "upright": Variant(266, 3e-6, TWO_SIZES, upright=True),
    "deformed": Variant(305, 3e-6, TWO_SIZES, 5, DEFORMATIONS),
    "deformed-upright": Variant(305, 2e-6, TWO_SIZES, 5, DEFORMATIONS, upright=True),
    "tuned": Variant(305, 5e-6, FEWER, 5, DEFORMATIONS, weight=3.0, upright=True, tune=8),
}
# Multiply-adds per pixel of setting an image upright: moments and interpolation.
UPRIGHT_ADDS = 15
# Sizes of the models that are reported.
SIZES = (10, 25, 50, 75, 100, 150, 200, 266, 305)
# A GPU stores all responses exactly; those of 360,000 images take 67 GiB.
GPU_GIB = 100.0
# Sizes with --quick.
QUICK_ROWS, QUICK_FEATURES, QUICK_TEMPLATES = 6000, 50, 200


def choose_settings(variant: str, *, quick: bool = False, device: str = "cpu") -> Variant:
    """Return the settings of a variant; with ``quick``, smaller ones.

    On the CPU, deformed copies need the paper's pool: even rounded to bytes, the responses of the
    other pools would take more memory than ``Patches`` allows by default.
    """
    found = VARIANTS[variant]
    if device.startswith("cuda"):
        found = replace(found, patches={**found.patches, "max_gib": GPU_GIB})
    elif found.copies:
        found = replace(found, patches=PAPER)
    if not quick:
        return found
    patches = {**found.patches, "n_templates": QUICK_TEMPLATES}
    return replace(found, features=QUICK_FEATURES, patches=patches, rows=QUICK_ROWS)
