"""Tables of row blocks: data that need not fit into memory, and sums over their rows.

Open ``table.py`` first. Sources say where rows lie, executors who computes, ``sums`` how results
add up. The package imports no other room.
"""
