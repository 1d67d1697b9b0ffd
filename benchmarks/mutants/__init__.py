"""Small changes to the code that tests should notice: which of them they do.

A mutant is the package with one small, realistic mistake in it: a comparison that includes its
bound, a sign, an axis, a factor, a missing statement. Mutants are drawn with a seed from all rooms
that compute, and each is tried with the tests of its room. ``mutations.py`` makes them,
``trial.py`` runs the tests, and ``equivalent.py`` lists those that change nothing a caller could
see, with the reason. Start reading at ``command.py``.
"""
