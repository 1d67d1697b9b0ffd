"""Real multi-task data: explained variance of two norms and of ridge regressions.

``python -m benchmarks.matrix.real_data ORDER`` prints the figures of all methods on one split of
one dataset. ORDER is JSON. Columns are standardised and targets centred by the training rows,
and every penalty is chosen on training rows.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.harness.bar import Check
from benchmarks.harness.jobs import Store, run_module
from benchmarks.harness.measure import read_cpu_seconds

# Number of splits: the stored ones of school and computer, random ones of the others.
SPLITS = {"school": 10, "parkinsons": 5, "computer": 1, "sarcos": 10, "sarcos-100": 10}
TITLES = {
    "school": "school: 139 schools, 27 columns, the 10 stored splits",
    "parkinsons": "parkinsons: 42 patients, 19 columns, 5 random quarters of each held out",
    "computer": "computer: 190 persons, 13 columns, the 4 validation profiles of 20",
    "sarcos": "sarcos: 7 outputs, 21 columns, 10 random quarters held out",
    "sarcos-100": "sarcos-100: the same, 100 random rows to learn from",
}
HELD_OUT, FEW_ROWS = 0.25, 100
RIDGES = np.logspace(-3, 5, 33)
PENALTIES, RATIO, FOLDS, TOL = 20, 1e-3, 5, 1e-3
PUBLISHED = 26.0  # percent, multi-task feature learning on school: "about"


@dataclass(frozen=True)
class Tasks:
    """The training and test parts of every task; with ``shared``, all tasks have the same rows."""

    train: Sequence[tuple[np.ndarray, np.ndarray]]
    test: Sequence[tuple[np.ndarray, np.ndarray]]
    shared: bool = False


Predictions = list[np.ndarray]
Found = tuple[Predictions, dict[str, Any]]


# --- data


def load(name: str, split: int) -> Tasks:
    """Return one split of one dataset, standardised by its training rows."""
    from mixnorm import datasets

    stored = datasets.load("sarcos_4449" if name.startswith("sarcos") else name)
    X, y = (np.asarray(stored[key], dtype=np.float64) for key in ("X", "y"))
    if y.ndim == 2:
        rows = np.random.default_rng(split).permutation(len(X))
        held = round(HELD_OUT * len(X)) if name == "sarcos" else len(X) - FEW_ROWS
        return split_outputs(X, y, np.isin(np.arange(len(X)), rows[:held]))
    task = stored["task"]
    if "split_test_mask" in stored:
        test = stored["split_test_mask"][split].astype(bool)
    elif "profile" in stored:
        test = stored["profile"] >= 16
    else:
        test = draw_quarters(task, split)
    return split_by_task(X, y, task, test)


def draw_quarters(task: np.ndarray, seed: int) -> np.ndarray:
    """Return a mask that has a random quarter of the rows of every task."""
    rng = np.random.default_rng(seed)
    mask = np.zeros(len(task), dtype=bool)
    for name in np.unique(task):
        rows = rng.permutation(np.flatnonzero(task == name))
        mask[rows[: round(HELD_OUT * len(rows))]] = True
    return mask


def split_by_task(X: np.ndarray, y: np.ndarray, task: np.ndarray, test: np.ndarray) -> Tasks:
    """Return tasks with their own rows; the targets keep their common unit."""
    X, y = standardise(X, ~test), y - y[~test].mean()
    own = [task == name for name in np.unique(task)]
    parts = [[(X[rows & part], y[rows & part]) for rows in own] for part in (~test, test)]
    return Tasks(*parts)


def split_outputs(X: np.ndarray, Y: np.ndarray, test: np.ndarray) -> Tasks:
    """Return one task per column of ``Y``, standardised because their units differ."""
    X, Y = standardise(X, ~test), standardise(Y, ~test)
    parts = [[(X[part], column[part]) for column in Y.T] for part in (~test, test)]
    return Tasks(*parts, shared=True)


def standardise(X: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Return columns of mean 0 and variance 1 on the training rows."""
    size = X[train].std(axis=0)
    made: np.ndarray = (X - X[train].mean(axis=0)) / np.where(size > 0, size, 1.0)
    return made


# --- methods


def fit_task_means(tasks: Tasks) -> Found:
    """Predict each task's training mean."""
    pairs = zip(tasks.train, tasks.test, strict=True)
    return [np.full(len(y_test), y.mean()) for (_, y), (_, y_test) in pairs], {}


def fit_independent(tasks: Tasks) -> Found:
    """Fit a ridge regression to each task, with its own penalty."""
    from sklearn.linear_model import RidgeCV

    pairs = zip(tasks.train, tasks.test, strict=True)
    return [RidgeCV(RIDGES).fit(X, y).predict(new) for (X, y), (new, _) in pairs], {}


def fit_independent_alike(tasks: Tasks) -> Found:
    """Fit a ridge regression to each task, with the penalty that is best for all together."""
    from sklearn.linear_model import Ridge, RidgeCV

    search = RidgeCV(RIDGES, store_cv_results=True)  # leave-one-out squared errors
    errors = sum(search.fit(X, y).cv_results_.sum(axis=0) for X, y in tasks.train)
    best = RIDGES[np.argmin(errors)]
    pairs = zip(tasks.train, tasks.test, strict=True)
    return [Ridge(best).fit(X, y).predict(new) for (X, y), (new, _) in pairs], {"alpha": best}


def fit_pooled(tasks: Tasks, *, intercepts: bool = False) -> Found:
    """Fit one ridge regression to all rows; ``intercepts`` adds an indicator of each task."""
    from sklearn.linear_model import RidgeCV

    train, test = (_make_pooled_columns(part, intercepts) for part in (tasks.train, tasks.test))
    y = np.concatenate([own for _, own in tasks.train])
    model = RidgeCV(RIDGES).fit(np.concatenate(train), y)
    return [model.predict(X) for X in test], {"alpha": float(model.alpha_)}


def _make_pooled_columns(
    part: Sequence[tuple[np.ndarray, np.ndarray]], intercepts: bool
) -> list[np.ndarray]:
    if not intercepts:
        return [X for X, _ in part]
    indicators = np.eye(len(part))
    return [
        np.hstack([X, np.broadcast_to(indicators[task], (len(X), len(part)))])
        for task, (X, _) in enumerate(part)
    ]


def fit_under_norm(tasks: Tasks, norm: str, *, intercepts: str = "free") -> Found:
    """Learn all tasks under a norm, with free intercepts or with a penalised column of ones."""
    from sklearn.model_selection import KFold

    from mixnorm import MultiTaskLearnerCV

    free = intercepts == "free"
    train, test = (
        [X if free else np.hstack([X, np.ones((len(X), 1))]) for X, _ in part]
        for part in (tasks.train, tasks.test)
    )
    model = MultiTaskLearnerCV(
        norm,
        alphas=PENALTIES,
        alpha_ratio=RATIO,
        cv=KFold(FOLDS, shuffle=True, random_state=0),
        one_standard_error=False,
        fit_intercept=free,
        tol=TOL,
    )
    targets = [y for _, y in tasks.train]
    if tasks.shared:
        model.fit(train[0], np.stack(targets, axis=1))
        found = list(model.predict(test[0]).T)
    else:
        found = model.fit(train, targets).predict(test)
    share = float(model.alpha_ / model.alpha_max_)
    return found, {"alpha_share": share, "features": len(model.support_), "rank": model.rank_}


def fit_beyond_pooled(tasks: Tasks, norm: str) -> Found:
    """Learn under a norm how the tasks differ from the pooled ridge regression."""
    from sklearn.linear_model import RidgeCV

    X, y = (np.concatenate(parts) for parts in zip(*tasks.train, strict=True))
    common = RidgeCV(RIDGES).fit(X, y)
    left = [(own, target - common.predict(own)) for own, target in tasks.train]
    found, facts = fit_under_norm(Tasks(left, tasks.test, tasks.shared), norm)
    pairs = zip(found, tasks.test, strict=True)
    return [own + common.predict(new) for own, (new, _) in pairs], facts


METHODS: dict[str, Callable[[Tasks], Found]] = {
    "task means": fit_task_means,
    "independent ridge": fit_independent,
    "independent ridge, one alpha": fit_independent_alike,
    "pooled ridge": fit_pooled,
    "pooled ridge, task intercepts": lambda tasks: fit_pooled(tasks, intercepts=True),
    "l2,1": lambda tasks: fit_under_norm(tasks, "l2,1"),
    "trace": lambda tasks: fit_under_norm(tasks, "trace"),
    "l2,1, intercepts too": lambda tasks: fit_under_norm(tasks, "l2,1", intercepts="in the norm"),
    "trace, intercepts too": lambda tasks: fit_under_norm(tasks, "trace", intercepts="in the norm"),
    "pooled ridge + l2,1": lambda tasks: fit_beyond_pooled(tasks, "l2,1"),
    "pooled ridge + trace": lambda tasks: fit_beyond_pooled(tasks, "trace"),
}


# --- the measuring process


def score_fit(targets: Sequence[np.ndarray], found: Sequence[np.ndarray]) -> dict[str, float]:
    """Return the explained share of the variance of the test rows, in percent.

    ``all`` is the variance around the mean of all rows. ``within`` is the variance around the mean
    of each task, for which knowing the task alone explains nothing.
    """
    left = sum(np.sum((y - own) ** 2) for y, own in zip(targets, found, strict=True))
    every = np.concatenate(targets)
    total = np.sum((every - every.mean()) ** 2)
    inside = sum(np.sum((y - y.mean()) ** 2) for y in targets)
    return {"all": 100 * float(1 - left / total), "within": 100 * float(1 - left / inside)}


def measure(data: str, split: int, methods: Iterable[str]) -> dict[str, Any]:
    """Return the figures of some methods on one split."""
    tasks = load(data, split)
    targets = [y for _, y in tasks.test]
    figures: dict[str, Any] = {}
    for name in methods:
        began = read_cpu_seconds()
        found, facts = METHODS[name](tasks)
        figures[name] = score_fit(targets, found) | facts | {"seconds": read_cpu_seconds() - began}
    return figures


def run(chosen: Sequence[str] | None, store: Store, console: Console) -> None:
    """Measure the splits that are not in the store, each in its own process."""
    for data, count in SPLITS.items():
        for split in range(count):
            found = store.content.get("real", {})
            key = f"{data}/{split}"
            missing = [name for name in METHODS if name not in found.get(key, {})]
            if (chosen and data not in chosen) or not missing:
                continue
            order = {"data": data, "split": split, "methods": missing}
            made = run_module(["benchmarks.matrix.real_data", json.dumps(order)])
            store.put("real", found | {key: found.get(key, {}) | made})
            spent = sum(figures["seconds"] for figures in made.values())
            console.print(f"real/{key:<39} {spent:.3g} s", highlight=False)


# --- the report


def select_figures(found: Mapping[str, Any], data: str, method: str, figure: str) -> np.ndarray:
    """Return one figure of one method on all splits measured."""
    keys = [f"{data}/{split}" for split in range(SPLITS[data])]
    return np.asarray([found[key][method][figure] for key in keys if method in found.get(key, {})])


def format_mean(values: np.ndarray) -> str:
    """Return the mean, with its standard error if there are several splits."""
    if len(values) < 2:
        return f"{values.mean():.1f}" if len(values) else ""
    return f"{values.mean():.1f} ± {values.std(ddof=1) / np.sqrt(len(values)):.1f}"


def make_tables(found: Mapping[str, Any]) -> Iterator[Table]:
    """Yield a table for each dataset, with explained variance as mean and standard error."""
    for data, title in TITLES.items():
        if not any(key.startswith(f"{data}/") for key in found):
            continue
        table = Table(title=f"real: {title}", title_justify="left", box=SIMPLE_HEAD)
        table.add_column("explained variance, %", no_wrap=True)
        for column in ("of all rows", "within tasks", "alpha / max", "features", "rank", "seconds"):
            table.add_column(column, justify="right", no_wrap=True)
        for method in METHODS:
            rest = (
                ("alpha_share", "{:.2g}"),
                ("features", "{:.1f}"),
                ("rank", "{:.1f}"),
                ("seconds", "{:.2g}"),
            )
            cells = [_format_figure(found, data, method, figure, form) for figure, form in rest]
            shown = (select_figures(found, data, method, figure) for figure in ("all", "within"))
            table.add_row(method, *map(format_mean, shown), *cells)
        yield table


def _format_figure(found: Mapping[str, Any], data: str, method: str, figure: str, form: str) -> str:
    present = {key: {m: f for m, f in own.items() if figure in f} for key, own in found.items()}
    values = select_figures(present, data, method, figure)
    return form.format(values.mean()) if len(values) else ""


def check_bar(found: Mapping[str, Any]) -> Iterator[Check]:
    """Check school against ridge, and against the published figure (assumed within tasks)."""
    for norm in ("l2,1", "trace"):
        ours = select_figures(found, "school", norm, "within")
        if not len(ours):
            continue
        if norm == "trace":  # the published method, multi-task feature learning, uses it
            text, asked = f"{format_mean(ours)} %", f"about {PUBLISHED:g} %"
            enough = bool(ours.mean() >= PUBLISHED - 0.5)
            yield Check("real", f"school, {norm}", asked, text, enough)
        for peer in ("independent ridge", "pooled ridge"):
            theirs = select_figures(found, "school", peer, "within")
            text = f"{format_mean(ours)} against {format_mean(theirs)}"
            better = bool(len(theirs) and ours.mean() > theirs.mean())
            yield Check("real", f"school, {norm}", f"above {peer}", text, better)


if __name__ == "__main__":
    print(json.dumps(measure(**json.loads(sys.argv[1]))))
