"""Errors and warnings that mixnorm raises.

::

    MixnormError
    ├── ContractError          (also an AssertionError)
    ├── DatasetNotFoundError   (also a LookupError)
    ├── DatasetFormatError     (also a ValueError)
    ├── ModelFileError         (also a ValueError)
    ├── TableError             (also a ValueError)
    └── WorkerError            (also a RuntimeError)

    MixnormWarning
    ├── CoarseKernelWarning    (also a UserWarning)
    ├── FewerFeaturesWarning   (also a UserWarning)
    ├── InterruptedFitWarning  (also a RuntimeWarning)
    ├── KernelMemoryWarning    (also a UserWarning)
    ├── LightRowsWarning       (also a UserWarning)
    ├── NoKernelWarning        (also a UserWarning)
    ├── NotConvergedWarning    (also scikit-learn's ConvergenceWarning)
    └── SortedRowsWarning      (also a UserWarning)

Bad values raise ``ValueError`` and bad types ``TypeError``, as in scikit-learn.
Catch ``MixnormError`` for errors that only this package can raise.
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
    "WorkerError",
]


class MixnormError(Exception):
    """Base of all errors that mixnorm defines."""


class ContractError(MixnormError, AssertionError):
    """A check of mixnorm.testing found that a loss, norm or pool breaks a promise."""


class DatasetNotFoundError(MixnormError, LookupError):
    """A data set is not stored on this machine and could not be downloaded."""


class DatasetFormatError(MixnormError, ValueError):
    """A stored data set is damaged or has an unexpected form."""


class ModelFileError(MixnormError, ValueError):
    """A model file is damaged, foreign, or of a newer version, or a model cannot be stored."""


class TableError(MixnormError, ValueError):
    """A table cannot be read, or lacks columns or values that are needed."""


class WorkerError(MixnormError, RuntimeError):
    """A Dask cluster cannot be used, or its workers die or hang again and again."""


class MixnormWarning(Warning):
    """Base of all warnings that mixnorm defines."""


class FewerFeaturesWarning(MixnormWarning, UserWarning):
    """The model has fewer features than were asked for."""


class CoarseKernelWarning(MixnormWarning, UserWarning):
    """A low-rank approximation keeps little of a kernel."""


class InterruptedFitWarning(MixnormWarning, RuntimeWarning):
    """``fit`` was interrupted and kept the rounds that were finished."""


class KernelMemoryWarning(MixnormWarning, UserWarning):
    """Kernels do not fit into memory and are replaced by low-rank approximations."""


class LightRowsWarning(MixnormWarning, UserWarning):
    """The sample weights add up to very few rows, and the penalty is chosen from that number."""


class NoKernelWarning(MixnormWarning, UserWarning):
    """The penalty left no kernel in the model."""


class SortedRowsWarning(MixnormWarning, UserWarning):
    """Rows seem to be sorted by target, so that a fold holds targets unlike all others."""


# Created on first use: its second base belongs to scikit-learn, which is slow to import.
NotConvergedWarning: type[MixnormWarning]


def __getattr__(name: str) -> type[MixnormWarning]:
    if name != "NotConvergedWarning":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sklearn.exceptions import ConvergenceWarning

    class NotConvergedWarning(MixnormWarning, ConvergenceWarning):
        """A fit ended before it reached its tolerance."""

    NotConvergedWarning.__qualname__ = name  # pickle looks it up by this name
    # Two threads may get here at once; both must return the same class.
    return globals().setdefault(name, NotConvergedWarning)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
