"""Facts about a finished search for the model file, JSON, the report and the screen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from mixnorm._array import to_dense
from mixnorm.cli.data import TrainingTable
from mixnorm.cli.screen import describe_command, format_error
from mixnorm.cli.search import NestedErrors, SearchOutcome
from mixnorm.display import Feature, FullModel, Report
from mixnorm.tables import TableModel, pluralize

# Most rows on which the effect of a feature is measured.
_ROWS_FOR_EFFECTS = 20_000
_PLAIN = (str, int, float, bool, type(None))
# Facts that a report takes under the same names.
_REPORTED = (
    "task", "target", "created", "version", "command", "rows", "columns", "chosen", "how_chosen",
    "how_measured", "how_folds", "null_error", "multiply_adds", "comparisons", "interrupted",
    "error_name", "word", "columns_read",
)  # fmt: skip


def name_held_out_error(task: str) -> str:
    """Return the name of the held-out error."""
    return "error rate" if task == "classification" else "RMSE"


def list_path_rows(data: TrainingTable, found: SearchOutcome) -> list[dict[str, Any]]:
    """Return the path as one row per size."""
    losses = [float(found.path.null_loss_), *found.path.path_["loss"].tolist()]
    model = TableModel(data.target, data.task, data.encoder, found.path)
    atoms = [step.atom for step in found.path.model_.path.rounds]
    rows = []
    for size, atom in enumerate(atoms, start=1):
        known = size <= len(found.errors)
        rows.append(
            {
                "features": size,
                "name": model.describe(atom),
                "kind": data.encoder.kinds[atom] if data.pool == "columns" else data.word,
                "loss": losses[size],
                "gain": losses[size - 1] - losses[size],
                "error": found.errors[size - 1] if known else None,
                "standard_error": found.standard_errors[size - 1] if known else None,
                "folds": _count_folds(data, found, atom, max(size, found.chosen)),
            }
        )
    return rows


def _count_folds(data: TrainingTable, found: SearchOutcome, atom: Any, size: int) -> int | None:
    """Return how many fold models of a size have an atom that reads the columns of this one."""
    if data.pool == "pieces":  # every piece reads all columns
        return None

    def read(model: BaseEstimator, one: Any) -> Any:
        if data.pool == "columns":
            return one
        return frozenset(model.model_.pool.feature_indices((one,), data.encoder.width).tolist())

    wanted = read(found.path, atom)
    models = [fold.model for fold in found.folds]
    return sum(
        any(read(model, one) == wanted for one in model.model_.path.support(size))
        for model in models
    )


def explain_choice(data: TrainingTable, found: SearchOutcome) -> str:
    """Return sentences on why the model has this size, and on the error of this choice."""
    word = data.word
    if found.given is None:
        text = "The size with the smallest error on held-out rows, among those reached."
        if len(found.folds) > 1:
            text = (
                "The smallest size whose held-out error is within one standard error of the best, "
                f"by cross-validation with {len(found.folds)} folds."
            )
        return f"{text} The same held-out rows chose the size, so its error tends to be too low" + (
            "; --nested measures the error on rows that do not affect the choice."
            if found.nested is None
            else f". {_explain_nested(data, found.nested, len(found.folds))}"
        )
    text = f"The number of {word}s was given."
    if found.interrupted:
        text = f"The search was for {pluralize(found.given, word)}."
    if found.smaller is None:
        return text
    return (
        f"{text} {pluralize(found.smaller, word)} {'is' if found.smaller == 1 else 'are'} as good "
        f"within one standard error: --features {found.smaller} gives the smaller model."
    )


def _explain_nested(data: TrainingTable, nested: NestedErrors, wanted: int) -> str:
    """Return a sentence about the errors of nested cross-validation."""
    done, cut = len(nested.errors), ""
    if done < wanted:
        cut = f", interrupted after {done} of {wanted} folds"
    spread = f" ± {format_error(nested.standard_error, data.task)}" if done > 1 else ""
    sizes = ", ".join(map(str, nested.sizes))
    return (
        "With the size chosen anew within the training rows of each fold (nested "
        f"cross-validation{cut}), the {name_held_out_error(data.task)} is "
        f"{format_error(nested.error, data.task)}{spread}; sizes: {sizes}."
    )


def explain_errors(data: TrainingTable, found: SearchOutcome) -> str:
    """Return sentences on the rows that errors are measured on, and on the meaning of ±."""
    done = len(found.folds)
    over = "of the mean over the folds"
    if done == 1:
        size = len(found.folds[0].test)
        text = f"Errors are measured on {size} of {len(data.y)} rows that the fit did not see"
        over = "over these rows"
    elif done < found.n_splits:
        why = "it was interrupted" if found.interrupted else "the others found no feature"
        text = (
            f"Errors are measured on {done} of {found.n_splits} folds of the cross-validation, "
            f"because {why}"
        )
    else:
        text = (
            f"Errors are measured by cross-validation with {done} folds: every row is predicted "
            "by a model that did not see it"
        )
    weighted = "" if data.weight is None else " Rows count by their weight."
    if len(data.y) < data.n_rows:
        text += (
            f". The fits that are measured used a random sample of {len(data.y)} of {data.n_rows} "
            "rows; the model is fitted on all of them"
        )
    return f"{text}. ± is the standard error {over}.{weighted}"


def explain_folds(data: TrainingTable, found: SearchOutcome) -> str:
    """Return sentences on the models behind the errors, and on the column of folds."""
    word = data.word
    text = (
        f"Each fold chooses its own {word}s: the held-out error of a size is that of the fold "
        f"models of that size, whichever {word}s they use."
    )
    if data.pool == "pieces":
        return text
    use = "the feature" if data.pool == "columns" else f"a {word} of the same columns"
    models = f"{pluralize(len(found.folds), 'fold model')} with {pluralize(found.chosen, word)}"
    return f'{text} "folds" counts the {models} (in later rows, of that size) that use {use}.'


def describe_size(facts: dict[str, Any]) -> str:
    """Return the size of a model in words: ``3 of 8 features``, ``9 stumps of 3 columns (of 8)``.

    Parameters
    ----------
    facts : dict
        The result of :func:`collect_facts`, perhaps from an earlier version.
    """
    size, columns, word = facts["chosen"], facts["columns"], facts.get("word", "feature")
    if word == "feature":
        return f"{size} of {columns} features"
    if facts["columns_read"] == columns:
        return f"{pluralize(size, word)} of all {pluralize(columns, 'column')}"
    return f"{pluralize(size, word)} of {pluralize(facts['columns_read'], 'column')} (of {columns})"


def describe_cost(model: BaseEstimator) -> str:
    """Return the cost of a prediction in words."""
    text = f"{model.cost_.multiply_adds} multiplications and additions"
    return text + (f", {model.cost_.comparisons} comparisons" if model.cost_.comparisons else "")


def select_plain_parameters(estimator: BaseEstimator) -> dict[str, Any]:
    """Return the parameters of an estimator that are plain values."""
    given = estimator.get_params(deep=False)
    return {name: value for name, value in given.items() if isinstance(value, _PLAIN)}


def collect_facts(
    data: TrainingTable, found: SearchOutcome, command: Sequence[str], full: FullModel | None
) -> dict[str, Any]:
    """Return how a model was made and its measured errors, as plain values."""
    size = found.chosen
    rows = list_path_rows(data, found)
    model = TableModel(data.target, data.task, data.encoder, found.model)
    return {
        **describe_command(command),
        "table": data.name,
        "target": data.target,
        "task": data.task,
        "rows": data.n_rows,
        "columns": len(data.encoder.names),
        "chosen": size,
        "pool": data.pool,
        "word": data.word,
        "columns_read": len(model.features),
        "error_name": name_held_out_error(data.task),
        "error": found.errors[min(size, len(found.errors)) - 1],
        "standard_error": found.standard_errors[min(size, len(found.errors)) - 1],
        "null_error": found.null_error,
        "folds": len(found.folds),
        "smaller": found.smaller,
        "nested": _list_nested_errors(found),
        "full_error": None if full is None else full.error,
        "full_note": None if full is None else full.note,
        "own_full_error": None if full is None else full.own_error,
        "how_chosen": explain_choice(data, found),
        "how_measured": explain_errors(data, found),
        "how_folds": explain_folds(data, found),
        "interrupted": found.interrupted,
        "seconds": found.seconds,
        "multiply_adds": found.model.cost_.multiply_adds,
        "comparisons": found.model.cost_.comparisons,
        "path": rows[:size],
        "replaced": _list_replaced(model, rows[:size]),
        "notes": [*data.notes, *found.notes],
    }


def _list_nested_errors(found: SearchOutcome) -> dict[str, Any] | None:
    """Return the errors of nested cross-validation as plain values."""
    if found.nested is None:
        return None
    return {
        "error": found.nested.error,
        "standard_error": found.nested.standard_error if len(found.nested.errors) > 1 else None,
        "errors": found.nested.errors,
        "sizes": found.nested.sizes,
    }


def _list_replaced(model: TableModel, rows: list[dict[str, Any]]) -> list[str] | None:
    """Return the features of a model if replacement steps changed the chosen ones."""
    names = [model.describe(atom) for atom in model.estimator.model_.support]
    return None if names == [row["name"] for row in rows] else names


def make_report(
    data: TrainingTable,
    found: SearchOutcome,
    facts: dict[str, Any],
    full: FullModel | None,
    model_bytes: int,
) -> Report:
    """Return the HTML report of a model."""
    effects, signed = _measure_effects(data, found.model)
    labels = data.task == "classification"
    rows = list_path_rows(data, found)
    atoms = [step.atom for step in found.path.model_.path.rounds]
    spread = [math.nan if row["error"] is None else row["standard_error"] for row in rows]
    return Report(
        title=f"{data.target} from {data.name}",
        **{name: facts[name] for name in _REPORTED},
        notes=tuple(facts["notes"]),
        null_loss=float(found.path.null_loss_),
        features=tuple(
            Feature(
                row["name"],
                row["kind"] if data.pool == "columns" else "",
                row["loss"],
                row["gain"],
                row["error"],
                found.path.model_.pool.n_columns(atom, data.encoder.width),
                folds=row["folds"],
            )
            for row, atom in zip(rows, atoms, strict=True)
        ),
        standard_error=tuple(spread),
        classes=tuple(map(str, found.model.classes_)) if labels else (data.target,),
        effects=effects,
        signed=signed,
        confusion=_count_confusions(found) if labels else None,
        scatter=None if labels else np.column_stack(found.held_out),
        model_bytes=model_bytes,
        fit_seconds=found.seconds,
        full=full,
        members=None if facts["replaced"] is None else tuple(facts["replaced"]),
        n_folds=facts["folds"],
    )


def _count_confusions(found: SearchOutcome) -> np.ndarray:
    """Return the numbers, or weights, of held-out rows by true and predicted class."""
    from sklearn.metrics import confusion_matrix

    classes, weight = found.model.classes_, found.held_weight
    counts = confusion_matrix(*found.held_out, labels=classes, sample_weight=weight)
    return np.asarray(counts, dtype=np.float64)


def _measure_effects(
    data: TrainingTable, model: BaseEstimator
) -> tuple[np.ndarray, tuple[bool, ...]]:
    """Return for each feature and score the deviation over rows of the feature's contribution.

    The effect of a feature of one column has a sign: a larger value moves the score up or down. One
    of several columns has none, since it may do both.
    """
    step = max(1, data.X.shape[0] // _ROWS_FOR_EFFECTS)
    rows = data.X[::step]
    pool, support = model.model_.pool, model.model_.support
    weights = model.model_.weights
    if data.task == "classification":
        # Only differences between the scores of classes matter.
        weights = weights - weights.mean(axis=1, keepdims=True)
    effects, signed, row = [], [], 0
    for atom in support:
        part = np.asarray(to_dense(pool.evaluate(rows, [atom])), dtype=np.float64)
        own = np.asarray(weights[row : row + part.shape[1]], dtype=np.float64)
        row += part.shape[1]
        given = part @ own
        unit = float(np.max(np.abs(given))) or 1.0  # squares might overflow
        moved = unit * np.std(given / unit, axis=0)
        effects.append(moved * np.sign(own[0]) if part.shape[1] == 1 else moved)
        signed.append(part.shape[1] == 1)
    return np.column_stack(effects), tuple(signed)
