"""The command line: ``mixnorm fit``, ``path``, ``predict``, ``show``, ``stream``, ``demo``.

Open ``commands.py`` first; ``arguments`` has the parser, and ``stream`` its own command. The room
may
import all other rooms. Functions import what they need, so that ``mixnorm --help`` is quick.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import warnings
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from mixnorm.cli.arguments.parser import UsageError, build_parser, check_options

if TYPE_CHECKING:
    from mixnorm.cli.screen import Screen

__all__ = ["main"]

_DONE, _BAD_DATA, _BAD_USAGE, _INTERRUPTED = 0, 1, 2, 130
# The packages of the extra ``cli``.
_EXTRA = ("pandas", "pyarrow", "rich", "shtab")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words after ``mixnorm``; None takes them from the command line.

    Returns
    -------
    int
        0 for success, 1 for a problem with the data, 2 for wrong usage, 130 for an interrupt before
        there is anything to keep.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    for name in ("stdout", "stderr"):  # if one is closed, its output is discarded
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):  # characters that a terminal lacks raise no error
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        options = build_parser().parse_args(given)
        check_options(options)
        status = _run_safely(options, given)
        return _flush_output(status)
    except SystemExit as stop:  # --help or --version
        return int(stop.code or 0)
    except UsageError as error:
        return _report_usage(given, str(error))
    except ModuleNotFoundError as error:  # without rich there is no screen
        problem = _explain_missing_package(error)
        if problem is None or os.environ.get("MIXNORM_DEBUG"):
            raise
        sys.stderr.write(f"mixnorm: {problem}\n")
        _print_problem_as_json(given, problem)
        return _BAD_DATA
    except BrokenPipeError:  # the reader of the result went away
        _discard_output()
        return _DONE


def _flush_output(status: int) -> int:
    """Flush standard output and return the exit status."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError:  # reported already; at exit Python would flush again and change the status
        _discard_output()
        return status or _BAD_DATA
    return status


def _discard_output() -> None:
    """Discard the rest of standard output."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run_safely(options: argparse.Namespace, given: list[str]) -> int:
    """Run the command and return its exit status; report an error in one line."""
    from mixnorm.cli.screen import Screen
    from mixnorm.cli.signals import signals_as_interrupts

    screen = Screen(json=getattr(options, "json", False), quiet=getattr(options, "quiet", False))
    try:
        with signals_as_interrupts(), warnings.catch_warnings():
            warnings.showwarning = partial(_show_warning, screen)
            _run_command(options, screen, given)
    except (UsageError, BrokenPipeError):
        raise
    except KeyboardInterrupt:
        screen.print_problem("interrupted; there is nothing to keep yet")
        return _INTERRUPTED
    except MemoryError:
        screen.print_problem("not enough memory for this table; use fewer rows or columns")
        return _BAD_DATA
    except Exception as error:
        if os.environ.get("MIXNORM_DEBUG"):
            raise
        screen.print_problem(_format_exception(error))
        return _BAD_DATA
    return _DONE


def _show_warning(
    screen: Screen, message: Warning | str, category: type[Warning], *where: Any
) -> None:
    """Print a warning as a line; those of other libraries only for debugging."""
    from mixnorm.exceptions import MixnormWarning

    if issubclass(category, MixnormWarning) or os.environ.get("MIXNORM_DEBUG"):
        screen.remark(str(message))


def _run_command(options: argparse.Namespace, screen: Screen, given: list[str]) -> None:
    """Run the function of the command."""
    if options.command == "stream":
        from mixnorm.cli.stream.learn import stream as command
    else:
        from mixnorm.cli import commands

        command = getattr(commands, options.command)
    command(options, screen, given)


def _report_usage(given: list[str], message: str) -> int:
    """Print what is wrong with the options, and return the exit status."""
    command = next((word for word in given if not word.startswith("-")), "")
    name = f"mixnorm {command}".strip()
    sys.stderr.write(f"{name}: {message}. See {name} --help.\n")
    _print_problem_as_json(given, message)
    return _BAD_USAGE


def _print_problem_as_json(given: list[str], problem: str) -> None:
    """Print a problem as JSON if ``--json`` is among the words, even if others are wrong."""
    if "--json" in given:
        import json

        sys.stdout.write(json.dumps({"problem": problem}) + "\n")


def _explain_missing_package(error: Exception) -> str | None:
    """Return what to type if a package of the extra is missing; None for other errors."""
    package = (getattr(error, "name", None) or "").partition(".")[0]
    if not isinstance(error, ModuleNotFoundError) or package not in _EXTRA:
        return None
    return f'the command line needs {package}, which is not installed: pip install "mixnorm[cli]"'


def _format_exception(error: Exception) -> str:
    """Return an error in one line; an unexpected one with its type."""
    from mixnorm.exceptions import MixnormError

    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    missing = _explain_missing_package(error)
    if missing is not None:
        return missing
    text = str(error).strip() or type(error).__name__
    if isinstance(error, (MixnormError, ValueError, OSError)):
        return text
    return f"unexpected {type(error).__name__}: {text} (MIXNORM_DEBUG=1 shows where)"
