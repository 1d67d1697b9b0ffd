"""Reports to look at: ordinary ones, large ones, and ones made to break the page."""

import numpy as np
import pytest

from mixnorm.display import Feature, FullModel, Report

NASTY = [
    "<script>alert(1)</script>",
    "\"quotes\" & 'apostrophes' > signs",
    "new\nline\ttab\rreturn",
    "control\x00\x07\x1b characters\x85\x9f",
    "long " + "x" * 195,
    "",
    "   ",
    "עברית ועוד 12",
    "列の名前がとても長い場合にはどうなるのか見てみましょう",
    "👩‍👩‍👧‍👦 emoji 🎉",
    "\u202eoverride\u2066 isolate",
    "half \ud800 surrogate \ufffe",
    "</style><style>*{display:none}",
    "W" * 60,
]


def falling(n, start, end):
    """Return a curve that falls quickly, then slowly."""
    return end + (start - end) * np.exp(-np.arange(1, n + 1) / max(n / 5, 1))


def make_features(rng, n, *, start, end, errors, names=None):
    loss = falling(n, start, 0.1 * start)
    gain = -np.diff(loss, prepend=start * 1.1)
    error = falling(n, errors[0], errors[1]) * (1 + 0.02 * rng.normal(size=n))
    kinds = ["number", "number", "category (7 levels)", "date"]
    words = ["age", "fare", "cabin", "embarked", "class", "ticket", "title", "deck", "siblings"]
    return tuple(
        Feature(
            name=names[i % len(names)] if names else f"{words[i % 9]} {i // 9 or ''}".strip(),
            kind=kinds[i % 4],
            loss=float(loss[i]),
            gain=float(gain[i]),
            error=float(error[i]),
            n_columns=7 if i % 4 == 2 else 1,
        )
        for i in range(n)
    )


def make_confusion(rng, k, rows, wrong=0.08):
    """Return counts with most of the errors in few pairs."""
    weights = rng.gamma(0.15, size=(k, k)) * (1 - np.eye(k))
    shares = wrong * weights / np.maximum(weights.sum(1, keepdims=True), 1e-12)
    shares += np.diag(1 - shares.sum(1))
    return np.array([rng.multinomial(rows // k, line) for line in shares])


def make_classification(k, chosen, length, *, rows=4000, seed=0, **changes):
    rng = np.random.default_rng(seed)
    null = 1 - 1 / k
    features = make_features(rng, length, start=np.log(k), end=0.1, errors=(0.8 * null, 0.05))
    values = dict(
        title="class from cars.csv",
        task="classification",
        target="class",
        created="2026-11-15 14:02 UTC",
        version="0.1.0",
        command=f"mixnorm fit cars.csv --target class --features {chosen} --report cars.html",
        rows=rows,
        columns=max(64, length),
        notes=(
            "12 rows without a target were left out.",
            "Missing numbers were replaced by the median of their column.",
            "The column id has a value of its own in every row and was left out.",
        ),
        chosen=chosen,
        how_chosen="The smallest number of features within one standard error of the best.",
        how_measured="Errors are measured on held-out rows: 5-fold cross-validation.",
        null_loss=float(np.log(k)),
        null_error=null,
        features=features,
        standard_error=tuple(0.006 + 0.0 * i for i in range(length)),
        classes=tuple(f"class {i}" for i in range(k)),
        effects=rng.normal(size=(k, chosen)) * np.linspace(2, 0.3, chosen),
        signed=tuple(i % 4 != 2 for i in range(chosen)),
        confusion=make_confusion(rng, k, rows),
        scatter=None,
        multiply_adds=chosen * k,
        model_bytes=3120,
        fit_seconds=2.34,
        full=FullModel(
            0.048, max(64, length), max(64, length) * k, "Trained on 2,000 of 4,000 rows."
        ),
        error_name="error rate",
    )
    return Report(**values | changes)


def make_regression(m=300, chosen=5, length=9, *, seed=1, **changes):
    rng = np.random.default_rng(seed)
    truth = rng.gamma(4, 50_000, size=m)
    values = dict(
        title="price from houses.parquet",
        task="regression",
        target="price",
        features=make_features(rng, length, start=2e10, end=1e9, errors=(81_000.0, 32_000.0)),
        columns=23,
        standard_error=tuple(1500.0 for _ in range(length)),
        null_loss=2.2e10,
        null_error=98_000.0,
        classes=("price",),
        effects=rng.normal(size=(1, chosen)) * 40_000,
        confusion=None,
        scatter=np.column_stack([truth, truth + 32_000 * rng.normal(size=m)]),
        multiply_adds=5,
        full=FullModel(30_500.0, 23, 23),
        error_name="RMSE",
    )
    return make_classification(2, chosen, length, **values | changes)


def make_nasty():
    rng = np.random.default_rng(2)
    names = NASTY
    return make_classification(
        len(names),
        len(names),
        len(names) + 3,
        title=names[0],
        target=names[1],
        command="mixnorm fit '<a>&\"b\".csv'\n  --name \x1b[31m" + "y" * 300 + " \ud83d",
        created="<b>now</b>",
        version="0&1",
        notes=tuple(names),
        how_chosen=names[1],
        how_measured=names[0],
        interrupted=names[4],
        error_name="<i>error</i>",
        classes=tuple(names),
        features=make_features(rng, len(names) + 3, start=2, end=1, errors=(0.5, 0.2), names=names),
        full=FullModel(float("nan"), 10, 20, names[0]),
    )


def without_errors(features):
    return tuple(Feature(f.name, f.kind, f.loss, f.gain, None, f.n_columns) for f in features)


def make_interrupted():
    whole = make_classification(10, 4, 4)
    return make_classification(
        10,
        4,
        4,
        features=without_errors(whole.features),
        standard_error=None,
        null_error=None,
        confusion=None,
        model_bytes=None,
        full=None,
        notes=(),
        how_chosen="",
        how_measured="",
        interrupted="The fit was stopped after 4 of 20 features; what had been found was kept.",
    )


MAKERS = {
    "two": lambda: make_classification(
        2, 3, 6, classes=("survived", "died"), confusion=[[311, 49], [62, 469]]
    ),
    "ten": lambda: make_classification(10, 8, 16),
    "hundred": lambda: make_classification(100, 30, 40, rows=20_000),
    "regression": make_regression,
    "dense": lambda: make_regression(100_000, seed=3),
    "nasty": make_nasty,
    "interrupted": make_interrupted,
}


@pytest.fixture(scope="session")
def reports():
    """Reports by name, made once."""
    return {name: make() for name, make in MAKERS.items()}


@pytest.fixture
def classification():
    """A function that makes a report of classes."""
    return make_classification


@pytest.fixture
def regression():
    """A function that makes a report of a regression."""
    return make_regression
