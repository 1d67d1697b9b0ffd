"""Models: what a fit leaves, as frozen values that predict and know nothing of how they were found.

Open ``path.py`` first. Every model has ``scores``, ``cost`` and ``check``; ``inputs.py`` says what
goes in, ``outputs.py`` what the scores mean. The room may import ``pools``, ``norms``, ``losses``,
``kernels`` and ``data``. ``__init__.pyi`` lists the names.
"""

from mixnorm._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
