"""The parser of the command line. It imports nothing heavy, so that ``--help`` is quick."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from mixnorm import __version__
from mixnorm.cli.arguments import examples, types
from mixnorm.cli.pools import FEATURE_WORDS

if TYPE_CHECKING:
    # argparse has no public names for an object with options and for a set of commands.
    from argparse import _ActionsContainer as Options
    from argparse import _SubParsersAction

    Commands = _SubParsersAction[Any]

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
#: Largest size that a search tries by default.
DEFAULT_MAX_FEATURES = 30
SHELLS = ("bash", "zsh", "tcsh")


class UsageError(Exception):
    """Options that are wrong, or that contradict one another."""


class _Parser(argparse.ArgumentParser):
    """A parser that raises, so that wrong usage is reported in one place."""

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
    for add in (_add_fit, _add_path, _add_predict, _add_show, _add_stream, _add_advise, _add_demo):
        add(commands)
    _add_completion(commands)
    return parser


def _add_command(
    commands: Commands, name: str, summary: str, epilog: str = "", *, flags: bool = True
) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if flags:
        _add_flag(command, "--json", help="print one JSON object, for programs")
        _add_flag(command, "--quiet", "-q", help="print no progress and no remarks")
    return command


# Kinds of options.


def _add_flag(group: Options, *names: str, help: str) -> None:  # noqa: A002
    group.add_argument(*names, action="store_true", help=help)


def _add_number(group: Options, *names: str, **more: Any) -> None:
    group.add_argument(*names, metavar="N", **{"type": types.parse_count, **more})


def _add_columns(group: Options, name: str, help: str) -> None:  # noqa: A002
    """Add an option that names a column, and may be given several times."""
    group.add_argument(name, metavar="COLUMN", action="append", default=[], help=help)


def _add_kinds(group: Options) -> None:
    _add_columns(group, "--drop", "leave a column out")
    _add_columns(group, "--category", "read a column as categories, whatever it looks like")
    _add_columns(group, "--number", "read a column as numbers, whatever it looks like")


def _add_delimiter(group: Options, default: str) -> None:
    group.add_argument("--delimiter", metavar="CHAR", type=types.parse_delimiter, help=default)


def _add_target(command: argparse.ArgumentParser) -> None:
    command.add_argument("--target", "-t", metavar="COLUMN", help="the column to predict")


def _add_model(group: Options) -> None:
    words = "the model file (default: the name of the table with the ending .mixnorm)"
    group.add_argument("--model", "-m", metavar="FILE", help=words)


def _add_report(group: Options, what: str) -> None:
    group.add_argument("--report", "-r", metavar="FILE", help=f"an HTML page about the {what}")


def _add_table(command: argparse.ArgumentParser, *, many: bool = False) -> None:
    words = "CSV, TSV, Parquet or LIBSVM; - for stdin"
    if many:
        words += "; a folder, a quoted pattern or several files, if they are Parquet"
        command.add_argument("files", metavar="FILE", nargs="+", help=words)
    else:
        command.add_argument("file", metavar="FILE", help=words)
    _add_target(command)
    table = command.add_argument_group("the table")
    _add_format(table)
    _add_kinds(table)
    table.add_argument("--weight", metavar="COLUMN", help="a column of sample weights")
    table.add_argument("--task", choices=TASKS, help="default: detected from the target")


def _add_format(table: Options, formats: tuple[str, ...] = FORMATS) -> None:
    table.add_argument("--format", choices=formats, help="default: detected from the content")
    _add_delimiter(table, "default: detected from the content")
    table.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="whether the first row holds names (default: yes, unless it holds only numbers)",
    )


# The commands.


def _add_fit(commands: Commands) -> None:
    words = "choose features, fit a model, and write the model and a report"
    fit = _add_command(commands, "fit", words, examples.FIT)
    _add_table(fit, many=True)
    _add_learning(fit, "number of features (default: chosen by cross-validation)")
    _add_large(fit)
    written = fit.add_argument_group("output")
    _add_model(written)
    _add_report(written, "model")


def _add_large(fit: argparse.ArgumentParser) -> None:
    large = fit.add_argument_group("data larger than memory (Parquet)")
    words = "read the table block by block, and keep at most this, such as 1GiB (default 2GiB)"
    large.add_argument("--memory", metavar="SIZE", type=types.parse_memory, help=words)
    words = "compute on a Dask cluster: the address of its scheduler, such as tcp://host:8786"
    large.add_argument("--cluster", metavar="ADDRESS", help=words)
    words = "write each round to a file, from which the same command goes on after a stop"
    large.add_argument("--checkpoint", metavar="FILE", help=words)


def _add_path(commands: Commands) -> None:
    words = "print the error for each number of features"
    path = _add_command(commands, "path", words, examples.PATH)
    _add_table(path)
    words = f"largest number of features to try (default {DEFAULT_MAX_FEATURES})"
    _add_learning(path, words, limited=False)


def _add_learning(command: argparse.ArgumentParser, features: str, *, limited: bool = True) -> None:
    learning = command.add_argument_group("learning")
    _add_number(learning, "--features", "-k", help=features)
    if limited:
        words = f"largest size that cross-validation tries (default {DEFAULT_MAX_FEATURES})"
        _add_number(learning, "--max-features", default=DEFAULT_MAX_FEATURES, help=words)
    learning.add_argument(
        "--pool",
        choices=tuple(FEATURE_WORDS),
        default="columns",
        help="kind of atoms: columns of the table (the default), stumps (a column is at most "
        "a threshold), boxes (one or two such conditions at once), products of two columns, or "
        "pieces (functions that are linear near a point)",
    )
    _add_number(
        learning,
        "--max-inputs",
        help="largest number of columns that the model may read; each level of a "
        "category and each part of a date counts as a column",
    )
    words = "number of folds of the cross-validation (default 5)"
    _add_number(learning, "--folds", type=types.parse_folds, help=words)
    _add_flag(
        learning,
        "--nested",
        help="also measure the error by nested cross-validation, which chooses the size without "
        "the rows that it scores; this takes several times as long",
    )
    words = "ridge penalty, a number or auto (default auto: chosen from the training rows)"
    learning.add_argument(
        "--alpha", metavar="A", type=types.parse_alpha, default="auto", help=words
    )
    losses = ("margin", "logistic", "squared")
    words = "default: margin for classes, squared for numbers"
    learning.add_argument("--loss", choices=losses, help=words)
    words = "rule that chooses the next feature (default joint)"
    learning.add_argument("--rule", choices=RULES, default="joint", help=words)
    words = "replacement steps after each round (default 0)"
    _add_number(learning, "--swaps", type=types.parse_whole, default=0, help=words)
    words = "seed of the split into folds and of the centres of pieces (default 0)"
    _add_number(learning, "--seed", type=types.parse_whole, default=0, help=words)


def _add_predict(commands: Commands) -> None:
    predict = _add_command(commands, "predict", "apply a model to a new table", examples.PREDICT)
    predict.add_argument("model", metavar="MODEL", help="a file that mixnorm fit or stream wrote")
    words = "the new table; - for stdin; a folder, a quoted pattern or several Parquet files"
    predict.add_argument("files", metavar="FILE", nargs="+", help=words)
    words = "Parquet if the name ends in .parquet, else CSV (default: standard output)"
    predict.add_argument("--output", "-o", metavar="FILE", help=words)
    _add_flag(predict, "--probabilities", help="also write the probability of each class")
    _add_columns(predict, "--keep", "copy a column of the table")
    _add_number(predict, "--features", "-k", help="use only the first N features")
    _add_format(predict.add_argument_group("the table"), (*FORMATS, "jsonl"))


def _add_show(commands: Commands) -> None:
    show = _add_command(commands, "show", "describe a model, its features, errors and cost")
    show.add_argument("model", metavar="MODEL", help="a file that mixnorm fit or stream wrote")


def _add_stream(commands: Commands) -> None:
    words = "learn from a file or a pipe, a row at a time, and report the error so far"
    stream = _add_command(commands, "stream", words, examples.STREAM)
    words = "CSV, TSV or JSON lines; - for stdin, which is the default in a pipe"
    stream.add_argument("file", metavar="FILE", nargs="?", help=words)
    _add_target(stream)
    rows = stream.add_argument_group("the rows")
    words = "default: detected from the name or the content"
    rows.add_argument("--format", choices=STREAM_FORMATS, help=words)
    _add_delimiter(rows, "default: detected from the first lines")
    _add_kinds(rows)
    _add_flag(rows, "--strict", help="stop at a row that cannot be read")
    _add_online(stream.add_argument_group("learning"))
    written = stream.add_argument_group("output")
    _add_model(written)
    words = "continue to train the model; lines of a file that it has read are skipped"
    _add_flag(written, "--resume", help=words)
    words = "write the model every N rows, and at the end (default 100000)"
    _add_number(written, "--checkpoint", default=100_000, help=words)
    words = "print a line every N rows (default: after 1, 2, 4, ... 1024, then a quarter more)"
    _add_number(written, "--every", help=words)
    words = (
        "write a table with the line, the prediction before learning, and the target of each row"
    )
    written.add_argument("--predictions", metavar="FILE", help=words)


def _add_online(learning: Options) -> None:
    learning.add_argument(
        "--learner",
        choices=LEARNERS,
        help="mirror: mirror descent for labels (the default); perceptron; regressor: mirror "
        "descent for numbers",
    )
    learning.add_argument(
        "--norm",
        choices=("l2,2", "l2,1", "l1,1", "trace"),
        help="norm that keeps the weights small (l2,2), uses few features shared by the classes "
        "(l2,1), few weights (l1,1) or a low rank (trace); default l2,2, for the perceptron l2,1",
    )
    learning.add_argument(
        "--loss",
        choices=tuple(dict.fromkeys((*LOSSES["mirror"], *LOSSES["regressor"]))),
        help="for labels logistic (the default), margin or hinge; for numbers squared (the "
        "default) or one of the others",
    )
    learning.add_argument(
        "--learning-rate",
        choices=("auto", "feature", "adaptive", "anytime", "fixed"),
        help="rule for the step size (default auto)",
    )
    learning.add_argument("--eta0", metavar="A", type=types.parse_positive, help="the step size")
    words = "limit on the norm of the weights"
    learning.add_argument("--radius", metavar="R", type=types.parse_positive, help=words)
    words = "use columns as they are, without centring and scaling them by the rows so far"
    _add_flag(learning, "--no-scale", help=words)
    _add_flag(learning, "--average", help="predict with the average of all weights so far")
    words = "hash feature names into N columns, for ever new names; numbers are not centred"
    _add_number(learning, "--hash", help=words)


def _add_advise(commands: Commands) -> None:
    words = "compare norms, and recommend one with the reasons"
    advise = _add_command(commands, "advise", words, examples.ADVISE)
    _add_table(advise)
    comparing = advise.add_argument_group("comparing")
    words = "largest number of rows to compare norms on (default 2000)"
    _add_number(comparing, "--rows", type=types.parse_rows, default=2000, help=words)
    words = "seed of the choice of rows and folds (default 0)"
    _add_number(comparing, "--seed", type=types.parse_whole, default=0, help=words)
    _add_report(advise.add_argument_group("output"), "advice")
    advise.set_defaults(pool="columns")


def _add_demo(commands: Commands) -> None:
    demo = _add_command(commands, "demo", "find the few pixels that tell ten digits apart")
    place = "mixnorm-demo"
    demo.add_argument("--output", "-o", metavar="FOLDER", default=place, help=f"default: {place}")


def _add_completion(commands: Commands) -> None:
    words = "print a script that completes commands and options in your shell"
    completion = _add_command(commands, "completion", words, examples.COMPLETION, flags=False)
    completion.add_argument("shell", choices=SHELLS)


def check_options(options: argparse.Namespace) -> None:
    """Raise :class:`UsageError` for options that cannot work, before any file is read."""
    if options.command == "stream":
        _check_stream(options)
    if hasattr(options, "files"):
        options.file = options.files[0]
    written = _WRITTEN.get(options.command, ())
    for name in written:
        if getattr(options, name) is not None:
            _check_place(getattr(options, name), f"--{name}")
    _check_distinct(options, written)
    if getattr(options, "file", None) == "-" and "model" in written and options.model is None:
        raise UsageError("a table from standard input has no file name; give --model FILE")
    for name in getattr(options, "keep", ()):
        if name == "prediction" or name.startswith("probability "):
            raise UsageError(f"--keep {name}: the output has its own column of that name")
    if getattr(options, "pool", None) == "pieces" and options.max_inputs is not None:
        raise UsageError("--max-inputs cannot limit --pool pieces: each piece reads all columns")
    if getattr(options, "nested", False) and options.command == "fit" and options.features:
        raise UsageError(
            "--nested measures how well the size is chosen, but --features fixes the size; "
            "leave one of them out"
        )
    overlap = set(getattr(options, "category", ())) & set(getattr(options, "number", ()))
    if overlap:
        raise UsageError(f"--category and --number both name {sorted(overlap)[0]!r}")


def _check_stream(options: argparse.Namespace) -> None:
    """Raise for options of ``mixnorm stream`` that cannot work; set the default file."""
    if options.file is None:
        if sys.stdin is None or sys.stdin.isatty():
            raise UsageError("name a FILE, or send rows through a pipe")
        options.file = "-"
    if options.resume:
        learning = ("learner", "norm", "loss", "learning_rate", "eta0", "radius", "no_scale")
        for name in (*learning, "average", "hash", "drop", "category", "number"):
            if getattr(options, name):
                option = name.replace("_", "-")
                raise UsageError(f"--{option} cannot be changed with --resume: the model fixes it")
        return
    learner = options.learner or "mirror"
    for name in ("loss", "learning_rate", "eta0", "radius"):
        if learner == "perceptron" and getattr(options, name) is not None:
            option = name.replace("_", "-")
            raise UsageError(f"--{option} does not apply to --learner perceptron")
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
    """Raise if an output file is also read, or is also another output."""
    places = {
        name: getattr(options, name)
        for name in ("file", "model", *written)
        if written and getattr(options, name, None) not in (None, "-")
    }
    for name in written:
        for other, place in places.items():
            if other != name and name in places and _same_file(places[name], place):
                what = "table" if other == "file" else other
                raise UsageError(f"--{name} {places[name]} would replace the {what}")


_WRITTEN = {
    "advise": ("report",),
    "fit": ("model", "report", "checkpoint"),
    "predict": ("output",),
    "stream": ("model", "predictions"),
}


def _same_file(one: str, other: str) -> bool:
    if Path(one).exists() and not Path(one).is_file():  # a pipe, a terminal
        return False
    return Path(one).resolve() == Path(other).resolve()
