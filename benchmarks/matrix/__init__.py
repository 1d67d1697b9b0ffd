"""Matrix norms beside other solvers: multi-task and multi-class problems to one duality gap.

Every method solves the same problem to the same gap, which one function apart from the package
takes at its solution. Parts: ``multitask`` (squared loss, l2,1), ``multiclass`` (paths of 50,
l2,1 and linf,1), ``trace`` (trace norm), ``truth`` (small problems beside cvxpy). The part ``real``
is of another kind: explained variance on real multi-task data, beside ridge regressions.

Start reading at ``command.py``; ``gap.py`` takes the gap, ``ours.py``, ``tasks.py`` and
``classes.py`` have the solvers.
"""
