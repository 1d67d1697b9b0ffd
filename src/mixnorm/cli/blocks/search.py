"""The search on a sample of rows, and the fit on all rows, block by block."""

from __future__ import annotations

import argparse
from typing import Any

from mixnorm.cli.blocks.data import LargeTable
from mixnorm.cli.blocks.reading import describe_blocks
from mixnorm.cli.progress import RoundCallback
from mixnorm.cli.screen import Screen
from mixnorm.cli.search import TableSearch
from mixnorm.tables import pluralize


class LargeSearch(TableSearch):
    """A search that measures errors on a sample of rows, and fits the chosen size on all rows.

    Parameters
    ----------
    data : LargeTable
        The table.
    options : Namespace
        The options under "learning".
    screen : Screen
        The screen for progress.
    """

    data: LargeTable

    def __init__(self, data: LargeTable, options: argparse.Namespace, screen: Screen) -> None:
        super().__init__(data, options, screen, whole=False)
        data.table.on_progress = self._show_blocks

    def _show_blocks(self, done: int, all_: int) -> None:
        self.bar.show_reading(describe_blocks(self.data.table, done, all_))

    def _fit(self, model: Any, callback: RoundCallback) -> None:
        model.set_callbacks(callback)
        model.fit(self.data.table).set_callbacks()

    def _keep_interrupted(self, path: Any, chosen: int) -> None:
        """Keep a path that was interrupted, if it has a feature."""
        done = path.model_.size
        if not done:
            raise KeyboardInterrupt
        again = ""
        if self.data.table.checkpoint is not None:
            again = " The same command goes on from the checkpoint."
        self.interrupted = (
            f"The fit was interrupted; the model has {done} of "
            f"{pluralize(chosen, self.data.word)}, fitted on all {self.data.n_rows} rows.{again}"
        )
