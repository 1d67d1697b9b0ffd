"""Errors and warnings that mixnorm raises.

::

    MixnormError
    ├── ContractError          (also an AssertionError)
    ├── DatasetNotFoundError   (also a LookupError)
    ├── DatasetFormatError     (also a ValueError)
    ├── ModelFileError         (also a ValueError)
    └── TableError             (also a ValueError)

    MixnormWarning
    ├── CoarseKernelWarning    (also a UserWarning)
    ├── FewerFeaturesWarning   (also a UserWarning)
    ├── InterruptedFitWarning  (also a RuntimeWarning)
    ├── KernelMemoryWarning    (also a UserWarning)
    ├── LightRowsWarning       (also a UserWarning)
    ├── NoKernelWarning        (also a UserWarning)
    ├── NotConvergedWarning    (also scikit-learn's ConvergenceWarning)
    └── SortedRowsWarning      (also a UserWarning)

Bad values and bad types are plain ``ValueError`` and ``TypeError``, as in
scikit-learn: catching ``MixnormError`` is for what only this package can go
wrong with.
"""

from __future__ import annotations

__all__ = [
    "CoarseKernelWarning",
    "ContractError",
    "DatasetFormatError",
    "DatasetNotFoundError",
    "FewerFeaturesWarning",
    "InterruptedFitWarning",
    "KernelMemoryWarning",
    "LightRowsWarning",
    "MixnormError",
    "MixnormWarning",
    "ModelFileError",
    "NoKernelWarning",
    "NotConvergedWarning",
    "SortedRowsWarning",
    "TableError",
]


class MixnormError(Exception):
    """Base of the errors that are mixnorm's own."""


class ContractError(MixnormError, AssertionError):
    """A loss, norm or pool is not what an engine relies on; a check of mixnorm.testing says so."""


class DatasetNotFoundError(MixnormError, LookupError):
    """No stored copy of a data set was found, and it could not be fetched."""


class DatasetFormatError(MixnormError, ValueError):
    """A stored data set cannot be read: damaged, or not in the expected form."""


class ModelFileError(MixnormError, ValueError):
    """A model file is damaged, foreign, or of a newer version, or a model cannot be stored."""


class TableError(MixnormError, ValueError):
    """A table cannot be read, or does not hold what is asked of it."""


class MixnormWarning(Warning):
    """Base of mixnorm's warnings."""


class FewerFeaturesWarning(MixnormWarning, UserWarning):
    """The model has fewer features than were asked for."""


class CoarseKernelWarning(MixnormWarning, UserWarning):
    """What stands in for a kernel holds little of it."""


class InterruptedFitWarning(MixnormWarning, RuntimeWarning):
    """``fit`` was interrupted; the rounds finished before that are kept."""


class KernelMemoryWarning(MixnormWarning, UserWarning):
    """Kernels do not fit into memory, and are replaced by others of low rank."""


class LightRowsWarning(MixnormWarning, UserWarning):
    """Sample weights count as next to no rows for a penalty that is chosen by their number."""


class NoKernelWarning(MixnormWarning, UserWarning):
    """The penalty left no kernel in the model."""


class SortedRowsWarning(MixnormWarning, UserWarning):
    """Rows seem to be sorted by their targets, so that folds hold targets unlike the others."""


# Made on first use, since its other base is scikit-learn's, which takes long to import.
NotConvergedWarning: type[MixnormWarning]


def __getattr__(name: str) -> type[MixnormWarning]:
    if name != "NotConvergedWarning":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sklearn.exceptions import ConvergenceWarning

    class NotConvergedWarning(MixnormWarning, ConvergenceWarning):
        """A fit ended before it reached its tolerance."""

    NotConvergedWarning.__qualname__ = name  # where pickling looks for it
    # Another thread may have been quicker, and there must be one class.
    made: type[MixnormWarning] = globals().setdefault(name, NotConvergedWarning)
    return made


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
