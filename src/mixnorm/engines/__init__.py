"""Engines: the algorithms, written over losses, norms and pools, without scikit-learn.

One folder per engine; the public function of each is in its ``engine.py``. ``_core`` holds the
loops that several share. Open ``greedy/engine.py`` first. The room may import ``pools``, ``norms``,
``losses``, ``kernels`` and ``data``.
"""
