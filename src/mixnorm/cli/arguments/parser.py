"""What the command line understands. Imports nothing heavy: ``--help`` is to be quick."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from mixnorm import __version__
from mixnorm.cli.arguments import examples, types
from mixnorm.cli.pools import FEATURE_WORDS

FORMATS = ("csv", "tsv", "parquet", "libsvm")
TASKS = ("classification", "regression")
STREAM_FORMATS = ("csv", "tsv", "jsonl")
LEARNERS = ("mirror", "perceptron", "regressor")
LOSSES: dict[str, tuple[str, ...]] = {
    "mirror": ("logistic", "margin", "hinge"),
    "perceptron": (),
    "regressor": ("squared", "absolute", "huber", "epsilon_insensitive"),
}
RULES = ("joint", "l1", "l2", "line", "column", "exact")
#: How far the search for a size goes when the user does not say.
DEFAULT_MAX_FEATURES = 30
SHELLS = ("bash", "zsh", "tcsh")


class UsageError(Exception):
    """The command line asks for something that cannot be."""


class _Parser(argparse.ArgumentParser):
    """A parser that raises, so that wrong usage is told in one place."""

    def error(self, message: str) -> NoReturn:
        """Raise :class:`UsageError`."""
        raise UsageError(message)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of ``mixnorm`` and its commands."""
    parser = _Parser(
        prog="mixnorm",
        description=examples.ABOUT,
        epilog=examples.ENDINGS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"mixnorm {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_fit(commands)
    _add_path(commands)
    _add_predict(commands)
    _add_show(commands)
    _add_stream(commands)
    _add_advise(commands)
    _add_demo(commands)
    _add_completion(commands)
    return parser


def _command(commands: Any, name: str, summary: str, epilog: str = "") -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _flag(made, "--json", help="print one JSON object, for programs")
    _flag(made, "--quiet", "-q", help="no progress, no remarks")
    return made


# Kinds of options.


def _flag(group: Any, *names: str, help: str) -> None:  # noqa: A002
    group.add_argument(*names, action="store_true", help=help)


def _number(group: Any, *names: str, kind: Callable[[str], int] = types.count, **more: Any) -> None:
    group.add_argument(*names, metavar="N", type=kind, **more)


def _columns(group: Any, name: str, help: str) -> None:  # noqa: A002
    """Add an option that names a column, and may be given several times."""
    group.add_argument(name, metavar="COLUMN", action="append", default=[], help=help)


def _add_kinds(group: Any) -> None:
    _columns(group, "--drop", "leave a column out")
    _columns(group, "--category", "a column of categories, whatever it looks like")
    _columns(group, "--number", "a column of numbers, whatever it looks like")


def _add_delimiter(group: Any, default: str) -> None:
    group.add_argument("--delimiter", metavar="CHAR", type=types.delimiter, help=default)


def _add_target(command: argparse.ArgumentParser) -> None:
    command.add_argument("--target", "-t", metavar="COLUMN", help="the column to predict")


def _add_model(group: Any) -> None:
    words = "the model file (default: the table's name .mixnorm)"
    group.add_argument("--model", "-m", metavar="FILE", help=words)


def _add_report(group: Any, what: str) -> None:
    group.add_argument("--report", "-r", metavar="FILE", help=f"an HTML page about the {what}")


def _add_table(command: argparse.ArgumentParser) -> None:
    command.add_argument("file", metavar="FILE", help="CSV, TSV, Parquet or LIBSVM; - for stdin")
    _add_target(command)
    table = command.add_argument_group("the table")
    _add_format(table)
    _add_kinds(table)
    table.add_argument("--weight", metavar="COLUMN", help="a column of sample weights")
    table.add_argument("--task", choices=TASKS, help="default: detected from the target")


def _add_format(table: Any, formats: tuple[str, ...] = FORMATS) -> None:
    table.add_argument("--format", choices=formats, help="default: detected from the content")
    _add_delimiter(table, "default: detected from the content")
    table.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="whether the first row holds names (default: unless it is all numbers)",
    )


# The commands.


def _add_fit(commands: Any) -> None:
    words = "choose features, fit a model, write it and a report"
    fit = _command(commands, "fit", words, examples.FIT)
    _add_table(fit)
    _add_learning(fit, "features of the model; without it, cross-validation chooses the size")
    written = fit.add_argument_group("what is written")
    _add_model(written)
    _add_report(written, "model")


def _add_path(commands: Any) -> None:
    path = _command(commands, "path", "print error against number of features", examples.PATH)
    _add_table(path)
    _add_learning(path, f"how many features to try (default {DEFAULT_MAX_FEATURES})", limited=False)


def _add_learning(command: argparse.ArgumentParser, features: str, *, limited: bool = True) -> None:
    learning = command.add_argument_group("learning")
    _number(learning, "--features", "-k", help=features)
    if limited:
        words = f"largest size that cross-validation tries (default {DEFAULT_MAX_FEATURES})"
        _number(learning, "--max-features", default=DEFAULT_MAX_FEATURES, help=words)
    learning.add_argument(
        "--pool",
        choices=tuple(FEATURE_WORDS),
        default="columns",
        help="what features are: columns of the table (the default), stumps (a column is at most "
        "some threshold), boxes (one or two such conditions at once), products of two "
        "columns, or pieces (linear near some point)",
    )
    _number(
        learning,
        "--max-inputs",
        help="most columns that all features together read; every level of a category counts as "
        "a column, and so do the parts of a date",
    )
    words = "folds of the cross-validation (default 5)"
    _number(learning, "--folds", kind=types.folds, help=words)
    _flag(
        learning,
        "--nested",
        help="also measure the error by nested cross-validation, which chooses the size without "
        "the rows that it scores; takes several times as long",
    )
    words = "ridge penalty, a number or auto (default auto: found from the training rows)"
    learning.add_argument("--alpha", metavar="A", type=types.penalty, default="auto", help=words)
    losses = ("margin", "logistic", "squared")
    learning.add_argument("--loss", choices=losses, help="default: margin, or squared")
    words = "how the next feature is chosen (default joint)"
    learning.add_argument("--rule", choices=RULES, default="joint", help=words)
    words = "replacement steps after each round (default 0)"
    _number(learning, "--swaps", kind=types.whole, default=0, help=words)
    words = "of the split into folds, and of the centres of pieces (default 0)"
    _number(learning, "--seed", kind=types.whole, default=0, help=words)


def _add_predict(commands: Any) -> None:
    predict = _command(commands, "predict", "apply a model to a new table", examples.PREDICT)
    predict.add_argument("model", metavar="MODEL", help="a file that mixnorm fit or stream wrote")
    predict.add_argument("file", metavar="FILE", help="the new table; - for stdin")
    predict.add_argument("--output", "-o", metavar="FILE", help="default: standard output")
    _flag(predict, "--probabilities", help="also the probability of every class")
    _columns(predict, "--keep", "copy a column of the table")
    _number(predict, "--features", "-k", help="use only the first N features")
    _add_format(predict.add_argument_group("the table"), (*FORMATS, "jsonl"))


def _add_show(commands: Any) -> None:
    show = _command(commands, "show", "say what a model is, its features, and what it costs")
    show.add_argument("model", metavar="MODEL", help="a file that mixnorm fit or stream wrote")


def _add_stream(commands: Any) -> None:
    words = "learn from a file or a pipe, a row at a time, and count mistakes"
    stream = _command(commands, "stream", words, examples.STREAM)
    words = "CSV or TSV with a header, or JSON lines; - for stdin, which is the default in a pipe"
    stream.add_argument("file", metavar="FILE", nargs="?", help=words)
    _add_target(stream)
    rows = stream.add_argument_group("the rows")
    words = "default: detected from the name or the content"
    rows.add_argument("--format", choices=STREAM_FORMATS, help=words)
    _add_delimiter(rows, "default: detected from the first lines")
    _add_kinds(rows)
    _flag(rows, "--strict", help="stop at a row that cannot be read")
    _add_online(stream.add_argument_group("learning"))
    written = stream.add_argument_group("what is written")
    _add_model(written)
    words = "go on with the model; lines of a file that it has learned from are passed over"
    _flag(written, "--resume", help=words)
    words = "write the model every N rows, and at the end (default 100000)"
    _number(written, "--checkpoint", default=100_000, help=words)
    words = "print a line every N rows (default: after 1, 2, 4, ... 1024, then a quarter more)"
    _number(written, "--every", help=words)
    words = "a table of the rows: the line, what was predicted before learning, and the target"
    written.add_argument("--predictions", metavar="FILE", help=words)


def _add_online(learning: Any) -> None:
    learning.add_argument(
        "--learner",
        choices=LEARNERS,
        help="mirror descent on labels (the default), the perceptron, or mirror descent on numbers",
    )
    learning.add_argument(
        "--norm",
        choices=("l2,2", "l2,1", "l1,1", "trace"),
        help="what is small in the weights: all (l2,2), features shared by the classes (l2,1), "
        "entries (l1,1), or the rank (trace); default l2,2, for the perceptron l2,1",
    )
    learning.add_argument(
        "--loss",
        choices=tuple(dict.fromkeys((*LOSSES["mirror"], *LOSSES["regressor"]))),
        help="of labels logistic (the default), margin or hinge; of numbers squared (the default) "
        "and the others",
    )
    learning.add_argument(
        "--learning-rate",
        choices=("auto", "feature", "adaptive", "anytime", "fixed"),
        help="how steps are chosen (default auto)",
    )
    learning.add_argument("--eta0", metavar="A", type=types.positive, help="the step size")
    words = "largest norm of the weights"
    learning.add_argument("--radius", metavar="R", type=types.positive, help=words)
    words = "take columns as they are, not from their mean so far and in units of what was seen"
    _flag(learning, "--no-scale", help=words)
    _flag(learning, "--average", help="predict by the average of all weights so far")
    words = "hash names, of which ever new ones come, into N columns; numbers count from zero"
    _number(learning, "--hash", help=words)


def _add_advise(commands: Any) -> None:
    words = "compare norms, and say which to use and why"
    made = _command(commands, "advise", words, examples.ADVISE)
    _add_table(made)
    comparing = made.add_argument_group("comparing")
    words = "rows to compare norms on, at most (default 2000)"
    _number(comparing, "--rows", kind=types.enough, default=2000, help=words)
    words = "draws rows and folds (default 0)"
    _number(comparing, "--seed", kind=types.whole, default=0, help=words)
    _add_report(made.add_argument_group("what is written"), "advice")
    made.set_defaults(pool="columns")


def _add_demo(commands: Any) -> None:
    demo = _command(commands, "demo", "find the few pixels that tell ten digits apart")
    place = "mixnorm-demo"
    demo.add_argument("--output", "-o", metavar="FOLDER", default=place, help=f"default: {place}")


def _add_completion(commands: Any) -> None:
    completion = commands.add_parser(
        "completion",
        help="print a script that completes commands and options in your shell",
        description="Print a completion script.",
        epilog=examples.COMPLETION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    completion.add_argument("shell", choices=SHELLS)


def check_options(options: argparse.Namespace) -> None:
    """Raise :class:`UsageError` for what cannot work, before any time is spent on it."""
    if options.command == "stream":
        _check_stream(options)
    written = _WRITTEN.get(options.command, ())
    for name in written:
        if getattr(options, name) is not None:
            _check_place(getattr(options, name), f"--{name}")
    _check_distinct(options, written)
    if getattr(options, "file", None) == "-" and "model" in written and options.model is None:
        raise UsageError("a table from standard input has no name; give --model FILE")
    if getattr(options, "pool", None) == "pieces" and options.max_inputs is not None:
        raise UsageError("--max-inputs cannot limit --pool pieces: each piece reads all columns")
    if getattr(options, "nested", False) and options.command == "fit" and options.features:
        raise UsageError(
            "--nested measures the choice of the size, and --features leaves nothing to choose; "
            "leave one of them out"
        )
    overlap = set(getattr(options, "category", ())) & set(getattr(options, "number", ()))
    if overlap:
        raise UsageError(f"--category and --number both name {sorted(overlap)[0]!r}")


def _check_stream(options: argparse.Namespace) -> None:
    """Raise for options of ``mixnorm stream`` that cannot be; standard input is the default."""
    if options.file is None:
        if sys.stdin is None or sys.stdin.isatty():
            raise UsageError("name a FILE, or send rows through a pipe")
        options.file = "-"
    if options.resume:
        learning = ("learner", "norm", "loss", "learning_rate", "eta0", "radius", "no_scale")
        for name in (*learning, "average", "hash", "drop", "category", "number"):
            if getattr(options, name):
                option = name.replace("_", "-")
                raise UsageError(f"--{option} cannot be changed with --resume: the model says")
        return
    learner = options.learner or "mirror"
    for name in ("loss", "learning_rate", "eta0", "radius"):
        if learner == "perceptron" and getattr(options, name) is not None:
            raise UsageError(f"--{name.replace('_', '-')} has no meaning for --learner perceptron")
    if options.loss is not None and options.loss not in LOSSES[learner]:
        fitting = ", ".join(LOSSES[learner])
        raise UsageError(
            f"--loss {options.loss} does not go with --learner {learner}; choose from {fitting}"
        )
    if options.target is not None and options.target in options.drop:
        raise UsageError(f"--drop names the target {options.target!r}")


def _check_place(place: str, option: str) -> None:
    """Raise unless a file can be written there."""
    folder = Path(place).absolute().parent
    if not folder.is_dir():
        raise UsageError(f"{option} {place}: there is no folder {folder}")
    if Path(place).is_dir():
        raise UsageError(f"{option} {place} is a folder; name a file")
    if not os.access(place if Path(place).exists() else folder, os.W_OK):
        raise UsageError(f"{option} {place} cannot be written: no permission")


def _check_distinct(options: argparse.Namespace, written: tuple[str, ...]) -> None:
    """Raise if what is written would replace what is read, or what else is written."""
    places = {
        name: getattr(options, name)
        for name in ("file", "model", *written)
        if written and getattr(options, name, None) not in (None, "-")
    }
    for name in written:
        for other, place in places.items():
            if other != name and name in places and _same_file(places[name], place):
                raise UsageError(f"--{name} {places[name]} would replace {_SPOKEN[other]}")


_WRITTEN = {
    "advise": ("report",),
    "fit": ("model", "report"),
    "predict": ("output",),
    "stream": ("model", "predictions"),
}
_SPOKEN = {
    "file": "the table",
    "model": "the model",
    "report": "the report",
    "predictions": "the predictions",
}


def _same_file(one: str, other: str) -> bool:
    if Path(one).exists() and not Path(one).is_file():  # a pipe, a terminal
        return False
    return Path(one).resolve() == Path(other).resolve()
