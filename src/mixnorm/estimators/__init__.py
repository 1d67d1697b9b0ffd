"""Estimators: the scikit-learn doors to the engines.

One folder per family: ``shareboost``, ``mixed_norm``, ``multitask``, ``kernels``, ``online`` and
``tensor``; ``_common`` holds what they share. Open ``shareboost/learners.py`` first. The room may
import everything below it: ``selection``, ``engines``, ``bounds``, ``pools``, ``norms``,
``losses``, ``kernels`` and ``data``. ``__init__.pyi`` lists the names.
"""

from mixnorm._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
