"""Learners of kernel weights, SVC, MKLpy and himalaya on the same stored kernels.

21 Gaussian kernels of segment, or of another dataset, are computed once. Fit and predict are timed
in the second call of a process. A single fit is compared with single fits, and a search with
searches. Other parts learn from so many rows that kernels cannot be stored.

Start reading at ``command.py``; ``methods.py`` has what is timed.
"""
