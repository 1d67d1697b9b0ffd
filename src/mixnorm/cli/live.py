"""What is drawn at the foot of a terminal while work goes on."""

from __future__ import annotations

from typing import Any, Self

from rich.progress import Progress, ProgressColumn

from mixnorm.cli.screen import Screen


class Live:
    """Draws progress on a terminal within a block, and nothing elsewhere or on a quiet screen.

    Parameters
    ----------
    screen : Screen
        Where to draw.
    *columns : rich.progress.ProgressColumn
        The parts of the line.
    **options
        Further options of :class:`rich.progress.Progress`.
    """

    def __init__(self, screen: Screen, *columns: ProgressColumn, **options: Any) -> None:
        self._screen = screen
        self._progress = Progress(
            *columns,
            console=screen.err,
            transient=True,
            disable=screen.quiet or not screen.err.is_terminal,
            **options,
        )

    def __enter__(self) -> Self:
        self._progress.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._progress.__exit__(*error)
