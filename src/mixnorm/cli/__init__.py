"""The command line: ``mixnorm fit``, ``path``, ``predict``, ``show``, ``stream``, ``demo``.

Open ``commands.py`` first; ``arguments`` has the parser, ``stream`` its command. The room may
import all others, in the functions that need them, so that ``mixnorm --help`` is quick.
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
        What stands behind ``mixnorm``; None takes it from the command line.

    Returns
    -------
    int
        0 for done, 1 for a problem with the data, 2 for wrong usage, 130 if interrupted before
        there was anything to keep.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    for name in ("stdout", "stderr"):  # where they are closed, output goes nowhere
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):  # a poor terminal shows less, but ends no command
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        options = build_parser().parse_args(given)
        check_options(options)
        status = _run(options, given)
        return _flush_output(status)
    except SystemExit as stop:  # the help or the version was asked for
        return int(stop.code or 0)
    except UsageError as error:
        return _usage(given, str(error))
    except ModuleNotFoundError as error:  # rich, which shows all other problems
        problem = _explain_missing_package(error)
        if problem is None or os.environ.get("MIXNORM_DEBUG"):
            raise
        sys.stderr.write(f"mixnorm: {problem}\n")
        _problem_as_json(given, problem)
        return _BAD_DATA
    except BrokenPipeError:  # the reader of the result went away: nobody is left to tell
        _forget_output()
        return _DONE


def _flush_output(status: int) -> int:
    """Return the exit status once the output is out, or given up."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except (
        OSError
    ):  # told already; at exit Python would try again, and end with a status of its own
        _forget_output()
        return status or _BAD_DATA
    return status


def _forget_output() -> None:
    """Let what is left of the output go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(options: argparse.Namespace, given: list[str]) -> int:
    """Run the command that was parsed, and turn what can go wrong into one line."""
    from mixnorm.cli.screen import Screen
    from mixnorm.cli.signals import signals_as_interrupts

    screen = Screen(json=getattr(options, "json", False), quiet=getattr(options, "quiet", False))
    try:
        with signals_as_interrupts(), warnings.catch_warnings():
            warnings.showwarning = partial(_remark, screen)
            _command(options, screen, given)
    except (UsageError, BrokenPipeError):
        raise
    except KeyboardInterrupt:
        screen.print_problem("interrupted before there was anything to keep")
        return _INTERRUPTED
    except MemoryError:
        screen.print_problem("not enough memory for this table; give fewer rows or columns")
        return _BAD_DATA
    except Exception as error:
        if os.environ.get("MIXNORM_DEBUG"):
            raise
        screen.print_problem(_format_exception(error))
        return _BAD_DATA
    return _DONE


def _remark(screen: Screen, message: Any, category: type[Warning], *where: Any) -> None:
    """Print a warning as a line; those of other libraries only if asked to: they name no option."""
    from mixnorm.exceptions import MixnormWarning

    if issubclass(category, MixnormWarning) or os.environ.get("MIXNORM_DEBUG"):
        screen.remark(str(message))


def _command(options: argparse.Namespace, screen: Screen, given: list[str]) -> None:
    """Run the function that the command is called by."""
    if options.command == "stream":
        from mixnorm.cli.stream.learn import stream as command
    else:
        from mixnorm.cli import commands

        command = getattr(commands, options.command)
    command(options, screen, given)


def _usage(given: list[str], message: str) -> int:
    command = next((word for word in given if not word.startswith("-")), "")
    name = f"mixnorm {command}".strip()
    sys.stderr.write(f"{name}: {message}. See {name} --help.\n")
    _problem_as_json(given, message)
    return _BAD_USAGE


def _problem_as_json(given: list[str], problem: str) -> None:
    """Print a problem as JSON where the options, which may be wrong, ask for that."""
    if "--json" in given:
        import json

        sys.stdout.write(json.dumps({"problem": problem}) + "\n")


def _explain_missing_package(error: Exception) -> str | None:
    """Return what to type where a package of the extra is missing; None for other errors."""
    package = (getattr(error, "name", None) or "").partition(".")[0]
    if not isinstance(error, ModuleNotFoundError) or package not in _EXTRA:
        return None
    return f'the command line needs {package}, which is not installed: pip install "mixnorm[cli]"'


def _format_exception(error: Exception) -> str:
    """Return an error in one line: ours as they are, others with what they are."""
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
