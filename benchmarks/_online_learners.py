"""What ``benchmarks.online`` runs: our learners and the others'."""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from benchmarks._measure import cpu_seconds
from benchmarks._online_data import Stream

BATCH = 100  # rows that scikit-learn's learners predict before they learn from them
SECONDS = 20.0  # after which river is stopped


@dataclass(frozen=True)
class Outcome:
    """One pass: rows seen and those predicted wrong (None: the learner does not say).

    ``seconds`` is given by learners that take their own time.
    """

    rows: int
    mistakes: int | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Learner:
    """Base of all learners: stateless, so a name and its settings say everything.

    ``only`` names the datasets that a learner is run on (empty: all), ``rows`` how many of them
    it is given.
    """

    needs: ClassVar[str] = ""
    ours: ClassVar[bool] = False

    only: tuple[str, ...] = ()
    rows: int | None = None

    def available(self) -> bool:
        """Whether the library is installed."""
        return importlib.util.find_spec(self.needs) is not None

    def setup(self) -> None:
        """Import what is needed; timed as part of the first pass's extra."""
        importlib.import_module(self.needs)

    def convert(self, stream: Stream, folder: Path) -> Any:
        """Give rows the form that the interface takes, in memory or in a folder; not timed."""
        return stream

    def learn(self, inputs: Any, rows: int | None = None) -> Outcome:
        """Let a fresh model learn, from ``rows`` of them if given; this is what is timed."""
        raise NotImplementedError

    def mistakes(self, inputs: Any) -> int | None:
        """Return the mistakes of a pass of its own, where the timed one does not count them."""
        return None


@dataclass(frozen=True)
class Ours(Learner):
    """One ``partial_fit`` of all rows, checks of the input included."""

    needs: ClassVar[str] = "mixnorm"
    ours: ClassVar[bool] = True

    name: str = "GroupPerceptron"
    settings: dict[str, Any] = field(default_factory=dict)

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
    """scikit-learn: one ``partial_fit`` of all rows, which counts no mistakes."""

    needs: ClassVar[str] = "sklearn"

    name: str = "SGDClassifier"
    settings: dict[str, Any] = field(default_factory=dict)

    def setup(self) -> None:
        self.model()

    def model(self) -> Any:
        """Return a fresh model, which leaves rows in their order."""
        from sklearn import linear_model

        return getattr(linear_model, self.name)(shuffle=False, random_state=0, **self.settings)

    def learn(self, inputs: Any, rows: int | None = None) -> Outcome:
        stream = inputs.first(rows)
        self.model().partial_fit(stream.X, stream.y, classes=np.arange(inputs.classes))
        return Outcome(len(stream.y))

    def mistakes(self, inputs: Any) -> int:
        """Predict every ``BATCH`` rows before they are learned from; weights of zero say 0."""
        model, wrong = self.model(), 0
        for start in range(0, len(inputs.y), BATCH):
            X, y = inputs.X[start : start + BATCH], inputs.y[start : start + BATCH]
            guess = model.predict(X) if start else np.zeros_like(y)
            wrong += int(np.count_nonzero(guess != y))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.partial_fit(X, y, classes=np.arange(inputs.classes))
        return wrong


@dataclass(frozen=True)
class VowpalWabbit(Learner):
    """``vw --oaa k`` on a text file, which it parses in the time that counts."""

    needs: ClassVar[str] = "vowpalwabbit"

    def convert(self, stream: Stream, folder: Path) -> tuple[str, int]:
        path = folder / "rows.vw"
        with path.open("w") as file:
            for row, label in zip(entries(stream), stream.y.tolist(), strict=True):
                words = " ".join(f"{place}:{value:.9g}" for place, value in row)
                file.write(f"{label + 1} | {words}\n")
        return str(path), stream.classes

    def learn(self, inputs: Any, rows: int | None = None) -> Outcome:
        from vowpalwabbit import Workspace

        path, classes = inputs
        # Making it reads the file to its end.
        workspace = Workspace(f"--oaa {classes} --quiet --no_stdin -d {path}")
        seen, wrong = workspace.get_weighted_examples(), workspace.get_sum_loss()
        workspace.finish()
        return Outcome(round(seen), round(wrong))


@dataclass(frozen=True)
class River(Learner):
    """river's ``SoftmaxRegression``: ``predict_one``, then ``learn_one``, a dict per row."""

    needs: ClassVar[str] = "river"

    zeros: bool = False  # whether entries that are zero are there too

    def setup(self) -> None:
        importlib.import_module("river.linear_model")

    def learn(self, inputs: Any, rows: int | None = None) -> Outcome:
        """Learn until the rows, or the seconds, are over; making the dicts is not timed."""
        from river.linear_model import SoftmaxRegression

        model, wrong, seen, spent = SoftmaxRegression(), 0, 0, 0.0
        stream = inputs.first(rows)
        for start in range(0, len(stream.y), BATCH):
            part = Stream(stream.X[start : start + BATCH], stream.y[start : start + BATCH])
            dicts = [dict(row) for row in entries(part, zeros=self.zeros)]
            labels = part.y.tolist()
            began = cpu_seconds()
            for row, label in zip(dicts, labels, strict=True):
                wrong += model.predict_one(row) != label
                model.learn_one(row, label)
            spent += cpu_seconds() - began
            seen += len(labels)
            if rows is None and spent > SECONDS:
                break
        return Outcome(seen, wrong, spent)


def entries(stream: Stream, *, zeros: bool = False) -> Iterator[list[tuple[int, float]]]:
    """Yield the places and values of every row; of those that are not zero, unless asked for."""
    if zeros:
        for row in stream.X:
            yield list(enumerate(row.tolist()))
        return
    X = sparse.csr_matrix(stream.X)
    for start, end in zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist(), strict=True):
        places, values = X.indices[start:end].tolist(), X.data[start:end].tolist()
        yield list(zip(places, values, strict=True))


PASSIVE = {"loss": "hinge", "penalty": None, "learning_rate": "pa1", "eta0": 1.0}
TRACE = {"norm": "trace", "learning_rate": "adaptive", "block_size": 1}

METHODS: dict[str, Learner] = {
    "group": Ours(),
    "plain": Ours(settings={"norm": "l2,2"}),
    "p-norm": Ours(settings={"norm": "l1,1"}),
    "mirror": Ours(name="MirrorDescentClassifier"),
    "trace": Ours(
        name="MirrorDescentClassifier",
        settings=TRACE,
        only=("isolet", "pendigits", "letter"),
        rows=6000,
    ),
    "vw": VowpalWabbit(),
    "sklearn-sgd": Sklearn(settings={"loss": "log_loss"}),
    "sklearn-perceptron": Sklearn(name="Perceptron"),
    # PassiveAggressiveClassifier is deprecated since 1.8 in favour of these settings.
    "sklearn-passive": Sklearn(settings=PASSIVE),
    "river": River(),
    "river-zeros": River(only=("mnist",), zeros=True),
}
