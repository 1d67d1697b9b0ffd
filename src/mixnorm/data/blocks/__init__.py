"""Tables of row blocks: data that need not fit into memory, and sums over their rows.

Open ``table.py`` first. A source reads rows, an executor runs tasks on them, and ``sums`` adds up
the results. The package imports no other room.
"""
