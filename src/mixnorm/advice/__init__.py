"""Advice: which norm to use on your data. The room itself can be called, as :func:`advise`."""

import sys
from types import ModuleType
from typing import Any

from mixnorm.advice.advice import Advice, NormAdvice
from mixnorm.advice.compare import advise

__all__ = ["Advice", "NormAdvice", "advise"]


class _Room(ModuleType):
    """A room that goes by the name of the function in it."""

    def __call__(self, *args: Any, **kwargs: Any) -> Advice:
        return advise(*args, **kwargs)


# Whoever imports the room first, ``mixnorm.advise`` is what can be called.
sys.modules[__name__].__class__ = _Room
