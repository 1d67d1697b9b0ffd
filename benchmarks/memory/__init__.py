"""Memory of a fit beside ``X``: dense, integer, memory-mapped and sparse arrays.

Every case is a process of its own that draws rows like those of mnist, fits a few rows so that
compiled code is loaded, and then fits all of them. Printed is how far the resident peak of that fit
is above what was resident just before it, data included: 0 is a fit that needs nothing beside
``X``, 1 is one that needs as much again. Pages of a memory map are loaded beforehand.

Start reading at ``command.py``; ``child.py`` is the process that measures.
"""
