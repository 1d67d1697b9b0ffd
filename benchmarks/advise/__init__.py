"""Advice on norms: how often it is right, on designs and real sets, and what it takes.

Every design and set is learned from under each norm with its own best penalty, and tested on rows
that nothing was chosen on. Advice is right where its norm's test error is within a standard error
of the smallest, and where it says that norms tie, or that nothing helps, when that is so.

Start reading at ``command.py``; ``data.py`` has the designs, ``child.py`` is the process that
measures.
"""
