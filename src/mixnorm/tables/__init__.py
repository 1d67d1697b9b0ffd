"""Tables: from files to matrices, and models that read tables themselves.

Open ``read.py`` first, then ``encoder.py``; ``rows`` has tables that arrive row by row. The room
imports only ``models`` and ``exceptions``: a ``TableModel`` takes any fitted estimator.
``__init__.pyi`` lists the names.
"""

from mixnorm._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
