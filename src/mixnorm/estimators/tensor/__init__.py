"""lp-norm regularisation with tensor kernels.

Open ``learners.py`` first, then ``base.py``. The folder may import ``_common``, the families
``kernels`` and ``mixed_norm``, ``selection``, ``engines``, ``kernels``, ``losses`` and ``models``.
"""
