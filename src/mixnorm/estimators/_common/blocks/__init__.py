"""Tables of row blocks and Dask collections as the data of estimators.

Open ``parts.py`` first, for predictions; ``tables.py`` checks tables to fit. The package may import
what ``estimators`` may.
"""
