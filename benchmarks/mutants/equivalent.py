"""Mutants that change nothing a caller could see, each with the reason.

They are left out of the count. A key is a file, a function, and the change.
"""

REASONS: dict[str, str] = {}
