"""Matrix norms and other solvers on multi-task and multi-class problems, to the same gap.

Every method solves the same problem to the same duality gap. One function, which is independent of
the package, measures the gap at each solution. The parts are ``multitask`` (squared loss, l2,1),
``multiclass`` (paths of 50 penalties, l2,1 and linf,1), ``trace`` (trace norm) and ``truth`` (small
problems, compared with cvxpy). The part ``real`` compares explained variance on real multi-task
data with ridge regressions.

Start reading at ``command.py``. ``gap.py`` measures the gap; ``ours.py``, ``tasks.py`` and
``classes.py`` have the solvers.
"""
