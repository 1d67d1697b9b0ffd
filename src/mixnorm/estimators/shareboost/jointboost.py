"""JointBoost: boosted stumps that subsets of the classes share."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mixnorm.engines import boosting
from mixnorm.engines.boosting import Path, Round
from mixnorm.estimators._common.inputs import (
    check_weights,
    random_generator,
)
from mixnorm.estimators._common.messages import warn_caller
from mixnorm.estimators._common.parameters import (
    CheckedParameters,
    Count,
    Number,
    Seed,
    Whole,
    maybe,
)
from mixnorm.estimators._common.progress import Progress, Rounds, all_or_nothing, with_callbacks
from mixnorm.estimators._common.staged import StagedClassifier, check_classes, check_size
from mixnorm.estimators._common.stored import _check_columns
from mixnorm.exceptions import FewerFeaturesWarning, InterruptedFitWarning
from mixnorm.pools import Cost

_SHARE = "it is the share of the columns that a round looks at"


@dataclass(eq=False, repr=False)
class JointBoostClassifier(CheckedParameters, StagedClassifier):
    r"""Multi-class classifier of boosted stumps, each shared by a subset of the classes.

    Gentle boosting. With labels :math:`z_i^c = \pm 1` (is row :math:`i` of class :math:`c`) and
    weights :math:`w_i^c = u_i \exp(-z_i^c H(x_i, c))` a round minimises

    .. math:: \sum_c \sum_i w_i^c \bigl(z_i^c - h(x_i, c)\bigr)^2

    over :math:`h(x, c) = a\, 1[x_j > \theta] + b` for the classes :math:`c` of a subset and
    :math:`h(x, c) = k_c` for all others, and adds :math:`h` to the scores :math:`H`. Column,
    threshold and subset are chosen together; the subset is grown one class at a time, from the best
    single class to all of them, and the best on that way is taken. With two classes there is one
    score, and nothing to share.

    Parameters
    ----------
    n_rounds : int, default=100
        Number of rounds; each adds one stump.
    n_bins : int or None, default=255
        Most distinct values that a column is looked at with: with more than that, thresholds lie
        between groups of about equal weight. None tries every threshold.
    max_features : float, default=1.0
        Share of the columns, drawn anew in each round, among which the round chooses.
    random_state : int, RandomState instance or None, default=None
        Draws these columns.

    Attributes
    ----------
    rounds_ : tuple of Round
        The rounds: ``feature``, ``threshold``, ``subset`` (positions in ``classes_``), ``a``, ``b``
        and ``constants`` (zero for the classes of the subset), ``error`` and ``loss``.
    selected_ : ndarray of shape (n_selected,)
        The columns used, in the order in which they were first chosen.
    path_ : dict of ndarray
        One row per round: ``"feature"``, ``"threshold"``, ``"n_classes"`` (size of the subset),
        ``"error"`` (weighted squared error, of weights that sum to one), ``"loss"`` (mean
        exponential loss after the round) and ``"seconds"``.
    cost_ : Cost
        Operations per row: a comparison for each distinct stump, an addition for each class that
        shares it.
    null_loss_ : float
        Loss before the first round.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    n_features_in_ : int
        Number of columns seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, where all are strings.

    See Also
    --------
    ShareBoostClassifier : Weights of its own for every class, all refitted in each round.
    OneVsRestGreedy : No sharing at all.

    Notes
    -----
    Columns are cut into bins once, and are a byte per entry from then on, sparse ones too. A round
    adds up the weights per column, bin and class, ``n_samples * n_features * n_classes`` additions
    on all threads that numba may use, and searches these tables, which take
    ``16 * n_features * n_bins * n_classes`` bytes. The exponential loss falls in every round; the
    fit ends early if no stump lowers it any more. A keyboard interrupt after the first round keeps
    the rounds done, with a warning.

    References
    ----------
    A. Torralba, K. P. Murphy, W. T. Freeman, "Sharing visual features for multiclass and multiview
    object detection", IEEE PAMI 29 (2007), 854-869.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mixnorm import JointBoostClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = JointBoostClassifier(n_rounds=60).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    >>> first = model.rounds_[0]
    >>> first.feature in model.selected_, bool(1 <= len(first.subset) <= 10)
    (True, True)
    """

    n_rounds: Count = 100
    _: KW_ONLY
    n_bins: Annotated[int | None, maybe(Whole(least=2))] = 255
    max_features: Annotated[float, Number(above=0, most=1, why=_SHARE)] = 1.0
    random_state: Seed = None

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose stumps and the classes that share them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,)
            Class labels of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples.

        Returns
        -------
        self
            The fitted classifier.
        """
        self._check_parameters()
        with all_or_nothing(self):
            X, y, labels = self._check_training(X, y)
            weight = check_weights(sample_weight, X.shape[0], np.float64)
            return self._fit(X, y, labels, weight, sample_weight)

    def _fit(
        self, X: Any, y: Any, labels: np.ndarray, weight: np.ndarray, sample_weight: Any
    ) -> Self:
        # Two classes have opposite labels: one score, positive for the second, says it all.
        target = labels if len(self.classes_) > 2 else np.where(labels == 1, 0, -1)
        kept = weight > 0.0
        bins = boosting.bin_columns(X, weight, self.n_bins)
        whole = Progress.of_fit(self, X, y, sample_weight, self.n_rounds)
        # It hands a path on as it is, of whichever engine.
        rounds: Any = Rounds(whole, self.n_rounds, self._attributes)
        path = boosting.boost(
            bins,
            target[kept],
            weight[kept],
            n_outputs=self._n_outputs,
            n_rounds=self.n_rounds,
            max_features=self.max_features,
            rng=random_generator(self.random_state),
            on_round=rounds.end,
        )
        self.__dict__.update(self._attributes(path))
        self._report(path)
        whole.end(dict)
        return self

    @property
    def _n_outputs(self) -> int:
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def _report(self, path: Path) -> None:
        done = f"{len(path.rounds)} of {self.n_rounds} rounds"
        if path.interrupted:
            warn_caller(f"Interrupted after {done}, which are kept.", InterruptedFitWarning)
        elif path.exhausted:
            warn_caller(f"Stopped after {done}: no stump lowers the loss.", FewerFeaturesWarning)

    def _attributes(self, path: Path) -> dict[str, Any]:
        """Return the fitted attributes that a path stands for."""
        rounds = path.rounds
        features = [step.feature for step in rounds]
        return {
            "_path": path,
            "rounds_": rounds,
            "selected_": np.asarray(list(dict.fromkeys(features)), dtype=np.intp),
            "path_": {
                "feature": np.asarray(features, dtype=np.intp),
                "threshold": np.asarray([step.threshold for step in rounds], dtype=np.float64),
                "n_classes": np.asarray([len(step.subset) for step in rounds], dtype=np.intp),
                "error": np.asarray([step.error for step in rounds], dtype=np.float64),
                "loss": np.asarray([step.loss for step in rounds], dtype=np.float64),
                "seconds": np.asarray([step.seconds for step in rounds], dtype=np.float64),
            },
            "cost_": _cost(rounds),
            "null_loss_": path.null_loss,
        }

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return class probabilities.

        The exponential loss of a class is least in expectation at half the log-odds, so that a
        score ``H`` stands for the probability ``1 / (1 + exp(-2 H))`` of the class against the
        rest. These are divided by their sum.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            New data.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows sum to one, columns in the order of ``classes_``.
        """
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of the class probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            New data.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        scores = self._scores(X)
        if scores.shape[1] == 1:
            return np.asarray(-np.logaddexp(0.0, 2.0 * np.hstack([scores, -scores])))
        logarithm = -np.logaddexp(0.0, -2.0 * scores)
        return np.asarray(logarithm - np.logaddexp.reduce(logarithm, axis=1, keepdims=True))

    def _scores(self, X: Any) -> np.ndarray:
        return boosting.scores(self._check_new(X), self.rounds_, self._n_outputs)

    def _staged_scores(self, X: Any) -> Iterator[np.ndarray]:
        return boosting.staged_scores(self._check_new(X), self.rounds_, self._n_outputs)

    def truncate(self, n_rounds: int) -> Self:
        """Return the fitted model after fewer rounds.

        No data is needed and nothing is refitted.

        Parameters
        ----------
        n_rounds : int
            Number of rounds of the smaller model.

        Returns
        -------
        estimator
            A fitted copy; the model itself is unchanged.
        """
        check_is_fitted(self)
        size = check_size(n_rounds, len(self.rounds_), "rounds", "n_rounds")
        smaller = copy.copy(self)
        smaller.n_rounds = size
        path = replace(self._path, rounds=self.rounds_[:size])
        smaller.__dict__.update(smaller._attributes(path))
        return smaller

    # --- model files

    def _fitted_state(self) -> dict[str, Any]:
        """Return what cannot be rebuilt, with the rounds as arrays."""
        rebuilt = {*self.get_params(deep=False), *self._attributes(self._path)}
        state = {name: value for name, value in vars(self).items() if name not in rebuilt}
        return state | {"_table": _as_table(self._path)}

    def _restore(self, state: dict[str, Any], max_bytes: int) -> None:
        """Take what ``_fitted_state`` returned, which may come from a stranger's file."""
        self._check_parameters()
        table = state.pop("_table")
        self.__dict__.update(state)
        check_classes(self.classes_)
        _check_columns(self, 1, max_bytes)
        path = _from_table(table, self._n_outputs, int(self.n_features_in_))
        self.__dict__.update(self._attributes(path))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_path")


def _cost(rounds: tuple[Round, ...]) -> Cost:
    """Return what a prediction costs, with rounds of one stump taken together."""
    stumps: dict[tuple[int, float], set[int]] = {}
    for step in rounds:
        stumps.setdefault((step.feature, step.threshold), set()).update(step.subset.tolist())
    return Cost(sum(map(len, stumps.values())), len(stumps))


# The numbers of a round, each an array over rounds in a model file.
_NUMBERS = ("threshold", "a", "b", "error", "loss", "seconds")


def _as_table(path: Path) -> dict[str, Any]:
    rounds = path.rounds
    shared = np.zeros((len(rounds), path.n_outputs), dtype=bool)
    for row, step in zip(shared, rounds, strict=True):
        row[step.subset] = True
    table = {name: np.asarray([getattr(step, name) for step in rounds]) for name in _NUMBERS}
    return {
        **{name: column.astype(np.float64) for name, column in table.items()},
        "feature": np.asarray([step.feature for step in rounds], dtype=np.int64),
        "shared": shared,
        "constants": np.asarray([step.constants for step in rounds]).reshape(shared.shape),
        "null_loss": path.null_loss,
        "interrupted": path.interrupted,
        "exhausted": path.exhausted,
    }


def _from_table(table: Any, n_outputs: int, n_features: int) -> Path:
    """Return the path of a table; raise if it is none."""
    wanted = {*_NUMBERS, "feature", "shared", "constants", "null_loss", "interrupted", "exhausted"}
    if not isinstance(table, dict) or table.keys() != wanted:
        raise ValueError("the table of rounds has other entries than it must have")
    length = len(table["feature"])
    floats = np.dtype(np.float64)
    for name in _NUMBERS:
        _check_array(table[name], (length,), floats, name)
    _check_array(table["constants"], (length, n_outputs), floats, "constants")
    _check_array(table["feature"], (length,), np.dtype(np.int64), "feature")
    _check_array(table["shared"], (length, n_outputs), np.dtype(bool), "shared")
    feature, shared = table["feature"], table["shared"]
    if np.any((feature < 0) | (feature >= n_features)):
        raise ValueError(f"a round uses a column outside the {n_features} columns")
    if not np.all(shared.any(axis=1)):
        raise ValueError("a round is shared by no class")
    if np.any(table["constants"][shared] != 0.0):
        raise ValueError("a class that shares a stump has a constant too")
    ends = table["interrupted"], table["exhausted"]
    if type(table["null_loss"]) is not float or not all(type(end) is bool for end in ends):
        raise ValueError("the end of the path is not told as it must be")
    rounds = tuple(
        Round(
            feature=int(feature[row]),
            subset=np.flatnonzero(shared[row]),
            constants=table["constants"][row].copy(),
            **{name: float(table[name][row]) for name in _NUMBERS},
        )
        for row in range(length)
    )
    return Path(rounds, n_outputs, table["null_loss"], *ends)


def _check_array(array: Any, shape: tuple[int, ...], dtype: np.dtype[Any], what: str) -> None:
    fits = isinstance(array, np.ndarray) and array.shape == shape and array.dtype == dtype
    if not fits or not np.all(np.isfinite(array)):
        raise ValueError(f"{what} must be a finite array of {dtype} of shape {shape}")
