"""Mutants that no caller could notice, each with the reason.

They are not counted. A key is a file, a function, and the change.
"""

_PROXIMAL: dict[str, str] = {}

_KERNEL_ENGINES: dict[str, str] = {}

_GREEDY_MIRROR_BOOSTING: dict[str, str] = {}

_KERNELS: dict[str, str] = {}

_LOSSES_AND_NORMS: dict[str, str] = {
    "norms/svd.py::find_ball_triplets::least > 1e-6 * radius -> (least >= 1e-06 * radius)": (
        "where both are equal, either way of computing is right"
    ),
}

_POOLS: dict[str, str] = {
    (
        "pools/patches/patches_jit.py::respond_few::starts[atom] + size * size -> "
        "(starts[atom] - size * size)"
    ): "only the start of the slice counts: the loops know the size of a template",
    "pools/patches/pool.py::_check_pixels::largest > limit**0.5 -> (largest >= limit ** 0.5)": (
        "they differ for images whose largest pixel is this very float; the guard is no sharp limit"
    ),
}

_SELECTION_AND_STORAGE: dict[str, str] = {}

REASONS: dict[str, str] = {
    **_PROXIMAL,
    **_KERNEL_ENGINES,
    **_GREEDY_MIRROR_BOOSTING,
    **_KERNELS,
    **_LOSSES_AND_NORMS,
    **_POOLS,
    **_SELECTION_AND_STORAGE,
}
