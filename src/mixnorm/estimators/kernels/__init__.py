"""Learning with many kernels, and with one.

Open ``mkl.py`` first, then ``base.py``. The folder may import ``_common``, ``engines``,
``kernels``, ``models``, ``pools`` and ``losses``.
"""
