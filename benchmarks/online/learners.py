"""The learners of ``benchmarks.online``: ours and those of other libraries."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from benchmarks.harness.measure import read_cpu_seconds
from benchmarks.online.data import Stream

BATCH = 10  # rows that scikit-learn's learners predict before they learn from them
COARSE = 100  # the same in a search for settings, and the rows that river gets at once
SECONDS = 20.0  # after which river is stopped


@dataclass(frozen=True)
class Outcome:
    """One pass: the number of rows, and of mistakes (None if the learner counts none).

    ``seconds`` is set by learners that measure their own time.
    """

    rows: int
    mistakes: int | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Learner:
    """Base of all learners. Learners have no state, so a name and settings identify them.

    ``only`` names the datasets that a learner runs on (empty: all), and ``rows`` limits their rows.
    ``grid`` has the settings that a tuned learner tries.
    """

    needs: ClassVar[str] = ""
    ours: ClassVar[bool] = False

    only: tuple[str, ...] = ()
    rows: int | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    grid: tuple[dict[str, Any], ...] = ()

    def available(self) -> bool:
        """Return whether the library is installed."""
        return importlib.util.find_spec(self.needs) is not None

    def setup(self) -> None:
        """Import what is needed; this counts as extra time of the first pass."""
        importlib.import_module(self.needs)

    def convert(self, stream: Stream, folder: Path) -> Any:
        """Return rows in the form that the library takes, in memory or in a folder; not timed."""
        return stream

    def learn(self, inputs: Any, rows: int | None = None) -> Outcome:
        """Let a fresh model learn from the first ``rows`` rows, or all; this call is timed."""
        raise NotImplementedError

    def mistakes(self, inputs: Any, batch: int = BATCH) -> int | None:
        """Return the mistakes of another pass, which is not timed.

        Learners that count no mistakes predict ``batch`` rows before they learn from them.
        """
        return self.learn(inputs).mistakes

    def with_settings(self, settings: dict[str, Any]) -> Learner:
        """Return the same learner with other settings and without a grid."""
        return replace(self, settings=self.settings | settings, grid=())


@dataclass(frozen=True)
class Ours(Learner):
    """One ``partial_fit`` of all rows, including the checks of the input."""

    needs: ClassVar[str] = "mixnorm"
    ours: ClassVar[bool] = True

    name: str = "GroupPerceptron"

    def setup(self) -> None:
        self.model()

    def model(self) -> Any:
        """Return a fresh model."""
        import mixnorm

        return getattr(mixnorm, self.name)(**self.settings)

    def learn(self, inputs: Any, rows: int | None = None) -> Outcome:
        stream = inputs.first(rows)
        model = self.model().partial_fit(stream.X, stream.y)
        return Outcome(len(stream.y), int(model.mistakes_))


@dataclass(frozen=True)
class Sklearn(Learner):
    """scikit-learn: one ``partial_fit`` of all rows, which does not count mistakes.

    With ``scaled``, columns are divided by their largest magnitude in the whole stream, as its
    guide recommends. Our learners must find the magnitudes on the way.
    """

    needs: ClassVar[str] = "sklearn"

    name: str = "SGDClassifier"
    scaled: bool = False

    def convert(self, stream: Stream, folder: Path) -> Stream:
        return stream.scale() if self.scaled else stream

    def setup(self) -> None:
        self.model()

    def model(self) -> Any:
        """Return a fresh model, which does not shuffle rows."""
        from sklearn import linear_model

        return getattr(linear_model, self.name)(shuffle=False, random_state=0, **self.settings)

    def learn(self, inputs: Any, rows: int | None = None) -> Outcome:
        stream = inputs.first(rows)
        self.model().partial_fit(stream.X, stream.y, classes=np.arange(inputs.classes))
        return Outcome(len(stream.y))

    def mistakes(self, inputs: Any, batch: int = BATCH) -> int:
        """Predict each ``batch`` rows before learning from them; zero weights predict class 0."""
        model, wrong = self.model(), 0
        for start in range(0, len(inputs.y), batch):
            X, y = inputs.X[start : start + batch], inputs.y[start : start + batch]
            guess = model.predict(X) if start else np.zeros_like(y)
            wrong += int(np.count_nonzero(guess != y))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.partial_fit(X, y, classes=np.arange(inputs.classes))
        return wrong


@dataclass(frozen=True)
class VowpalWabbit(Learner):
    """``vw --oaa k``, with so many bits that no two weights collide.

    It reads its binary cache, which is written beforehand. With ``text``, parsing the text file is
    timed as well.
    """

    needs: ClassVar[str] = "vowpalwabbit"

    text: bool = False

    def convert(self, stream: Stream, folder: Path) -> str:
        path = folder / "rows.vw"
        with path.open("w") as file:
            for row, label in zip(list_entries(stream), stream.y.tolist(), strict=True):
                words = " ".join(f"{place}:{value:.9g}" for place, value in row)
                file.write(f"{label + 1} | {words}\n")
        options = f"--oaa {stream.classes} -b {count_bits(stream)} --quiet --no_stdin -d {path}"
        if not self.text:
            options += f" --cache_file {folder / 'rows.cache'}"
            self.learn(options)  # writes the cache
        return options

    def learn(self, inputs: Any, rows: int | None = None) -> Outcome:
        from vowpalwabbit import Workspace

        chosen = " ".join(f"--{name} {value}" for name, value in self.settings.items())
        # The constructor reads the file to its end.
        workspace = Workspace(f"{inputs} {chosen}")
        seen, wrong = workspace.get_weighted_examples(), workspace.get_sum_loss()
        workspace.finish()
        return Outcome(round(seen), round(wrong))


def count_bits(stream: Stream) -> int:
    """Return Vowpal Wabbit's ``-b``, for 16 times as many places as weights, at least 2^18.

    Features have numbers as names, so their weights lie side by side. Only the intercepts are
    hashed.
    """
    weights = (stream.X.shape[1] + 1) * stream.classes
    return max(18, weights.bit_length() + 4)


@dataclass(frozen=True)
class River(Learner):
    """river's ``SoftmaxRegression``: ``predict_one``, then ``learn_one``, with a dict per row.

    With ``scaled``, river's ``MaxAbsScaler`` comes first, and with ``standard`` its
    ``StandardScaler``. The only setting is the step size ``lr``.
    """

    needs: ClassVar[str] = "river"

    zeros: bool = False  # whether the dicts have zeros
    scaled: bool = False
    standard: bool = False

    def setup(self) -> None:
        self.model()

    def model(self) -> Any:
        """Return a fresh model."""
        from river import linear_model, optim, preprocessing

        steps = {"optimizer": optim.SGD(**self.settings)} if self.settings else {}
        model = linear_model.SoftmaxRegression(**steps)
        if self.standard:
            return preprocessing.StandardScaler() | model
        return preprocessing.MaxAbsScaler() | model if self.scaled else model

    def learn(self, inputs: Any, rows: int | None = None) -> Outcome:
        """Learn until rows or seconds run out; making the dicts is not timed."""
        model, wrong, seen, spent = self.model(), 0, 0, 0.0
        stream = inputs.first(rows)
        for start in range(0, len(stream.y), COARSE):
            part = Stream(stream.X[start : start + COARSE], stream.y[start : start + COARSE])
            dicts = [dict(row) for row in list_entries(part, zeros=self.zeros)]
            labels = part.y.tolist()
            began = read_cpu_seconds()
            for row, label in zip(dicts, labels, strict=True):
                wrong += model.predict_one(row) != label
                model.learn_one(row, label)
            spent += read_cpu_seconds() - began
            seen += len(labels)
            if rows is None and spent > SECONDS:
                break
        return Outcome(seen, wrong, spent)


def list_entries(stream: Stream, *, zeros: bool = False) -> Iterator[list[tuple[int, float]]]:
    """Yield column numbers and values of each row; zeros only if requested."""
    if zeros:
        for row in stream.X:
            yield list(enumerate(row.tolist()))
        return
    X = sparse.csr_matrix(stream.X)
    for start, end in zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist(), strict=True):
        places, values = X.indices[start:end].tolist(), X.data[start:end].tolist()
        yield list(zip(places, values, strict=True))


def combine(**values: tuple[Any, ...]) -> tuple[dict[str, Any], ...]:
    """Return all combinations of values as settings."""
    return tuple(
        dict(zip(values, each, strict=True)) for each in itertools.product(*values.values())
    )


PASSIVE = {"loss": "hinge", "penalty": None, "learning_rate": "pa1", "eta0": 1.0}
TRACE = {"norm": "trace", "learning_rate": "adaptive", "block_size": 1}
# Grids of tuned learners, each with two losses (or rules) and seven step sizes (or penalties).
OURS_GRID = combine(loss=("logistic", "hinge"), eta0=(1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0))
VW_GRID = combine(loss_function=("squared", "logistic"), learning_rate=(0.1, 0.2, 0.5, 1, 2, 5, 10))
SGD_GRID = combine(loss=("log_loss", "hinge"), alpha=(3e-5, 1e-4, 3e-4, 1e-3, 1e-2, 3e-2, 1e-1))
PASSIVE_GRID = combine(learning_rate=("pa1", "pa2"), eta0=(1e-3, 3e-3, 0.01, 0.03, 0.1, 1.0, 3.0))

METHODS: dict[str, Learner] = {
    "group": Ours(),
    "plain": Ours(settings={"norm": "l2,2"}),
    "p-norm": Ours(settings={"norm": "l1,1"}),
    "mirror": Ours(name="MirrorDescentClassifier"),
    "mirror-tuned": Ours(name="MirrorDescentClassifier", grid=OURS_GRID),
    "trace": Ours(
        name="MirrorDescentClassifier",
        settings=TRACE,
        only=("isolet", "pendigits", "letter"),
        rows=6000,
    ),
    "vw": VowpalWabbit(),
    "vw-tuned": VowpalWabbit(grid=VW_GRID),
    "vw-text": VowpalWabbit(text=True),
    "sklearn-perceptron": Sklearn(name="Perceptron"),
    "sklearn-sgd": Sklearn(settings={"loss": "log_loss"}, scaled=True),
    "sklearn-sgd-tuned": Sklearn(grid=SGD_GRID, scaled=True),
    # PassiveAggressiveClassifier is deprecated since 1.8; these settings replace it.
    "sklearn-passive": Sklearn(settings=PASSIVE, scaled=True),
    "sklearn-passive-tuned": Sklearn(settings=PASSIVE, grid=PASSIVE_GRID, scaled=True),
    "river": River(),
    "river-scaled": River(scaled=True),
    "river-zeros": River(only=("mnist",), zeros=True),
}
