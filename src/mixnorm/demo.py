"""The first job: which few pixels tell ten digits apart? Run as ``python -m mixnorm.demo``."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

_SIZES = (1, 2, 3, 5, 8, 12, 16, 20, 30, 40)


def main(console: Console | None = None) -> dict[int, float]:
    """Fit one path on scikit-learn's digits, and print its curve and the chosen pixels.

    Returns
    -------
    dict
        Test error in per cent by number of pixels.
    """
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    from mixnorm import ShareBoostClassifier

    console = console or Console()
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    console.print(f"Digits: {len(X)} images of 8 x 8 pixels to learn from, {len(X_test)} to test.")
    model = ShareBoostClassifier(n_features_to_select=max(_SIZES)).fit(X, y)
    errors = [100 * float(np.mean(found != y_test)) for found in model.staged_predict(X_test)]
    console.print(_curve(model, errors))
    console.print("\nThe first 20 pixels, in the order in which they were chosen:\n")
    console.print(_picture(model.truncate(20).selected_))
    seconds = float(np.sum(model.path_["seconds"]))
    console.print(
        f"\nOne fit of {seconds:.2f} s gave all {len(errors)} models. "
        "model.truncate(8) is the one with 8 pixels."
    )
    return {size: errors[size - 1] for size in _SIZES}


def _curve(model: Any, errors: list[float]) -> Table:
    """Return the curve as a table with bars."""
    table = Table(title="Error against number of pixels")
    for name in ("pixels", "training loss", "test error"):
        table.add_column(name, justify="right")
    table.add_column("")
    for size in _SIZES:
        error = errors[size - 1]
        bar = "█" * max(1, round(0.4 * error))
        table.add_row(str(size), f"{model.path_['loss'][size - 1]:.3f}", f"{error:.1f} %", bar)
    return table


def _picture(pixels: np.ndarray) -> str:
    """Draw the 8 x 8 grid with the chosen pixels numbered."""
    rank = {int(pixel): order for order, pixel in enumerate(pixels, start=1)}
    rows = ([rank.get(8 * row + column) for column in range(8)] for row in range(8))
    return "\n".join(
        "  " + " ".join(f"{order:2d}" if order else " ·" for order in row) for row in rows
    )


if __name__ == "__main__":
    main()
