"""Learners of kernel weights beside SVC, MKLpy and himalaya, on the same stored kernels.

21 Gaussian kernels of segment, or another dataset, are computed once; fit and predict are timed,
the second call in a process. Single fits and searches are apart: one fit is set beside one fit, and
a search beside a search. Further parts learn from more rows than kernels can be stored for.

Start reading at ``command.py``; ``methods.py`` has what is timed.
"""
