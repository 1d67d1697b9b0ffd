"""Table 1 of J. Li et al., "Multi-class learning: from theory to algorithm", NeurIPS 2018.

Test accuracies in percent on the nine sets that are stored: mean and standard deviation over 50
random splits of 80 % and 20 %.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from benchmarks.mkl.data import TABLE1

SPLITS = 50

# In the order of ``benchmarks.mkl.data.TABLE1``.
_COLUMNS = {
    "conv": "96.67 2.94|99.63 0.96|75.19 5.05|82.69 5.65|98.82 1.19|79.35 2.27|96.79 0.91|"
    "96.08 0.83|91.64 0.88",
    "smsd": "97.00 2.63|99.63 0.96|73.72 5.80|85.17 3.83|98.83 5.57|77.28 2.78|97.62 0.83|"
    "96.30 0.79|91.78 0.82",
    "lmc": "88.00 7.82|97.87 2.80|63.95 6.04|81.10 4.15|62.32 4.97|75.61 3.56|95.07 1.11|"
    "92.02 1.50|84.95 1.15",
    "single-ovo": "95.93 3.25|97.24 3.05|71.98 5.75|84.79 3.45|98.12 1.76|78.72 1.92|97.08 0.61|"
    "95.89 0.56|90.67 0.91",
    "single-ovr": "95.87 3.20|98.14 3.04|70.00 5.75|84.27 3.03|98.22 1.83|79.11 1.94|97.02 0.80|"
    "95.61 0.73|89.29 0.96",
    "gmnp": "95.40 7.34|97.69 2.43|71.24 8.14|81.77 3.45|97.04 1.85|81.57 2.24|96.87 0.80|"
    "94.60 0.94|89.97 0.81",
    "l1": "95.40 6.46|98.61 1.75|69.07 8.08|83.16 3.63|98.27 1.22|74.96 2.93|96.98 0.64|"
    "96.27 0.68|91.86 0.62",
    "l2": "94.00 7.82|98.52 1.89|74.03 6.41|83.84 4.21|97.86 1.75|76.27 3.15|97.58 0.68|"
    "95.06 0.92|90.43 1.27",
    "ufo": "95.93 2.88|99.44 1.13|72.46 6.12|82.91 3.09|98.22 1.62|76.92 2.83|97.20 0.82|"
    "95.84 0.61|91.92 0.83",
}


@dataclass(frozen=True)
class Cell:
    """Mean and standard deviation over the paper's splits."""

    mean: float
    deviation: float

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        return self.deviation / math.sqrt(SPLITS)


def get_cell(data: str, method: str) -> Cell | None:
    """Return one cell; None where the paper has no such method."""
    return _CELLS.get((data, method))


_CELLS = {
    (data, method): Cell(*map(float, text.split()))
    for method, column in _COLUMNS.items()
    for data, text in zip(TABLE1, column.split("|"), strict=True)
}
