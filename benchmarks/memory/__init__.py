"""Memory that a fit needs in addition to ``X``: dense, integer, mapped and sparse arrays.

Each case is a process. It draws rows like those of mnist, fits a few rows to load compiled code,
and then fits all rows. The table has the peak memory of that fit less the resident size just before
it, as a multiple of ``X``: 0 means that the fit needs no memory besides ``X``, and 1 that it needs
as much again. The pages of a memory map are loaded beforehand.

Start reading at ``command.py``; ``child.py`` is the process that measures.
"""
