import io

import pytest
from rich.console import Console
from rich.progress import TextColumn

from mixnorm.cli.live import Live
from mixnorm.cli.screen import Screen


@pytest.mark.parametrize(("terminal", "quiet"), [(True, False), (True, True), (False, False)])
def test_drawn_on_terminals_alone(terminal, quiet):
    screen = Screen(quiet=quiet)
    screen.err = Console(file=io.StringIO(), force_terminal=terminal)
    live = Live(screen, TextColumn("{task.description}"))
    live._progress.add_task("fold 1 of 5")
    with live:
        live._progress.refresh()
    assert ("fold 1 of 5" in screen.err.file.getvalue()) == (terminal and not quiet)
