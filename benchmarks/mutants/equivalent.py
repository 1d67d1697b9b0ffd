"""Mutants that no caller could notice, each with the reason.

They are not counted. A key is a file, a function, and the change.
"""

_PROXIMAL: dict[str, str] = {}

_KERNEL_ENGINES: dict[str, str] = {}

_GREEDY_MIRROR_BOOSTING: dict[str, str] = {}

_KERNELS: dict[str, str] = {}

_LOSSES_AND_NORMS: dict[str, str] = {}

_POOLS: dict[str, str] = {}

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
