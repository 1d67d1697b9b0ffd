"""Model files: fitted models as plain arrays and JSON, which run no code when they are opened.

An estimator of :mod:`mixnorm.estimators` is stored as its parameters and its fitted state. By
default that state is all its attributes that are no parameters; an estimator that can rebuild some
of them, or that wants to check them, has two methods:

``_fitted_state()``
    Returns a dictionary of what cannot be rebuilt.
``_restore(state, max_bytes)``
    Takes that dictionary into an estimator just constructed with the stored parameters. The file
    may come from a stranger: raise for whatever ``predict`` could not work with, and before
    allocating more than ``max_bytes`` for what is rebuilt.

A dataclass of another room is stored by its fields and rebuilt through its constructor, with the
types of the fields checked against their annotations. It may have a method ``_check_stored()``,
which is then called and raises for what does not fit together.
"""

from mixnorm.storage.store import load, save

__all__ = ["load", "save"]
