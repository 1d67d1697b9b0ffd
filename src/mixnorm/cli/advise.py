"""``mixnorm advise``: compare norms on a table."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mixnorm._files import write_atomically
from mixnorm.cli.arguments.parser import UsageError
from mixnorm.cli.data import TrainingTable
from mixnorm.cli.screen import Screen, describe_command

if TYPE_CHECKING:
    from mixnorm.advice import Advice


def collect_advice_facts(
    advice: Advice, data: TrainingTable, command: Sequence[str]
) -> dict[str, Any]:
    """Return the comparison as plain values."""
    return {
        "table": data.name,
        "target": data.target,
        "task": data.task,
        "rows": advice.n_samples,
        "columns": advice.n_features,
        "outputs": advice.n_outputs,
        "best_norm": advice.best_norm_,
        "verdict": advice.verdict,
        "why": advice.why,
        "null_error": advice.null_error,
        "errors_are": advice.what,
        "norms": [
            row | {"bound": None if one.bound is None else one.bound.to_dict()}
            for row, one in zip(advice.rows(), advice.norms, strict=True)
        ],
        **describe_command(command),
        "notes": data.notes,
    }


def compare_norms(data: TrainingTable, options: argparse.Namespace, screen: Screen) -> Advice:
    """Compare norms, with a status line."""
    from mixnorm.advice import advise

    if options.weight is not None:
        raise UsageError(
            "mixnorm advise cannot use weights; use --drop COLUMN instead of --weight COLUMN"
        )
    with screen.status("comparing norms"):
        return advise(
            data.X, data.y, task=data.task, max_rows=options.rows, random_state=options.seed
        )


def write_advice_page(advice: Advice, facts: dict[str, Any], place: str) -> None:
    """Write the HTML page of a comparison."""
    from mixnorm.display import advice_page

    page = advice_page(
        advice,
        title=f"Which norm to use for {facts['target']} in {facts['table']}",
        version=facts["version"],
        created=facts["created"],
        made=[facts["command"], *facts["notes"]],
    )
    with write_atomically(place) as file:
        file.write(page.encode())
