"""The features and the baseline of ``mixnorm fit`` on drawn tables that resemble the penguins.

The printed baseline is compared with a tuned scikit-learn pipeline, ``LogisticRegressionCV`` on the
same folds. The pipeline fills gaps and standardises columns within each fold.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.harness.bar import Check
from benchmarks.harness.drawn_tables import NOISE, draw_penguins, write_csv
from benchmarks.harness.jobs import Record

SIZE, FOLDS = 5, 5
# The bar: share of tables without a noise column in the first five, and difference in points.
CLEAN, POINTS = 0.95, 0.5


def measure(seed: int) -> Record:
    """Run ``mixnorm fit -k 5`` on a table, and tune scikit-learn's pipeline on the same folds."""
    table = draw_penguins(seed)
    began = time.process_time()
    output = fit_table(table)
    seconds = time.process_time() - began
    return {
        "status": "ok",
        "chosen": [row["name"] for row in output["path"]],
        "error": 100.0 * output["error"],
        "baseline": 100.0 * output["full_error"],
        "own": 100.0 * output["own_full_error"],
        "tuned": measure_tuned_error(table),
        "seconds": seconds,
    }


def fit_table(table: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return the output of ``mixnorm fit --json`` for a table."""
    from mixnorm.cli import main

    with TemporaryDirectory() as folder:
        place = Path(folder)
        write_csv(dict(table), place / "penguins.csv")
        words = ["fit", str(place / "penguins.csv"), "--target", "species", "--json", "--quiet"]
        words += ["--features", str(SIZE), "--folds", str(FOLDS), "--model", str(place / "model")]
        with redirect_stdout(io.StringIO()) as out:
            code = main([*words, "--report", str(place / "report.html")])
        if code:
            raise RuntimeError(f"mixnorm fit ended with status {code}")
        output: dict[str, Any] = json.loads(out.getvalue())
        return output


def measure_tuned_error(table: Mapping[str, np.ndarray]) -> float:
    """Return the error in percent of a tuned pipeline on the folds of ``mixnorm fit``."""
    import pandas as pd
    from sklearn.model_selection import StratifiedKFold, cross_val_score

    frame = pd.DataFrame(dict(table)).replace("", np.nan)
    y = frame.pop("species").to_numpy(str)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    right = cross_val_score(_make_pipeline(), frame, y, cv=folds, scoring="accuracy")
    return 100.0 * (1.0 - float(np.mean(right)))


def _make_pipeline() -> Any:
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = make_column_selector(dtype_include="number")
    texts = make_column_selector(dtype_exclude="number")
    coded = make_pipeline(
        SimpleImputer(strategy="constant", fill_value="missing"),
        OneHotEncoder(handle_unknown="ignore", sparse_output=False),
    )
    return make_pipeline(
        make_column_transformer((SimpleImputer(strategy="median"), numbers), (coded, texts)),
        StandardScaler(),
        LogisticRegressionCV(
            l1_ratios=(0,), scoring="neg_log_loss", use_legacy_attributes=False, max_iter=1000
        ),
    )


def describe(record: Record) -> str:
    """Return one line about a table."""
    return (
        f"{', '.join(record['chosen'])}: {record['error']:.1f} %; all columns {record['own']:.1f} "
        f"%, scikit-learn as printed {record['baseline']:.1f} %, tuned {record['tuned']:.1f} %"
    )


def check_bar(found: Mapping[str, Record]) -> Iterator[Check]:
    """Check the chosen features and the printed baseline over all measured tables."""
    records = [
        record
        for key, record in found.items()
        if key.startswith("penguins/") and record.get("status") == "ok"
    ]
    clean, near = f">= {CLEAN:.0%} of tables", f"<= {POINTS:g} points"
    if not records:
        yield Check("penguins", "no noise among the first five", clean)
        yield Check("penguins", "printed baseline beside a tuned pipeline, mean", near)
        return
    good = sum(not set(record["chosen"]) & set(NOISE) for record in records)
    value = f"{good} of {len(records)}"
    yield Check(
        "penguins", "no noise among the first five", clean, value, good >= CLEAN * len(records)
    )
    # A row is 0.29 points: one table alone may well differ by two rows, whose gaps are filled
    # with medians of other rows.
    apart = [abs(record["baseline"] - record["tuned"]) for record in records]
    value = f"{np.mean(apart):.2f} (worst {max(apart):.2f} over {len(records)} tables)"
    name = "printed baseline beside a tuned pipeline, mean"
    yield Check("penguins", name, near, value, bool(np.mean(apart) <= POINTS))
