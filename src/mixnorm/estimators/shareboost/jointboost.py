"""JointBoost: boosted stumps that subsets of the classes share."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Self

import numpy as np

from mixnorm._array import ArrayLike, MatrixLike, SparseMatrix
from mixnorm.engines import boosting
from mixnorm.estimators._common.blocks.parts import map_parts
from mixnorm.estimators._common.inputs import (
    apply_class_weights,
    check_weights,
    random_generator,
)
from mixnorm.estimators._common.messages import warn_caller
from mixnorm.estimators._common.parameters import (
    ClassWeight,
    Count,
    Number,
    Seed,
    Whole,
    maybe,
)
from mixnorm.estimators._common.progress import FitTask, Rounds, all_or_nothing, with_callbacks
from mixnorm.estimators._common.staged import StagedClassifier
from mixnorm.exceptions import FewerFeaturesWarning, InterruptedFitWarning
from mixnorm.models import ClassOutputs, Inputs, StumpModel, StumpPath, StumpRound

_WHY_A_SHARE = "it is the share of the columns that a round searches"


class _Boosted(StagedClassifier):
    """Declares the kind of the model."""

    model_: StumpModel


@dataclass(eq=False, repr=False)
class JointBoostClassifier(_Boosted):
    r"""Multi-class classifier of boosted stumps, each shared by a subset of the classes.

    Gentle boosting. With labels :math:`z_i^c = \pm 1` (is row :math:`i` of class :math:`c`) and
    weights :math:`w_i^c = u_i \exp(-z_i^c H(x_i, c))` a round minimises

    .. math:: \sum_c \sum_i w_i^c \bigl(z_i^c - h(x_i, c)\bigr)^2

    over :math:`h(x, c) = a\, 1[x_j > \theta] + b` for the classes :math:`c` of a subset and
    :math:`h(x, c) = k_c` for all others, and adds :math:`h` to the scores :math:`H`. Column,
    threshold and subset are chosen together. The subset grows by one class at a time, from the best
    single class to all of them, and the best of these subsets is taken. With two classes there is
    one score, and nothing to share.

    Parameters
    ----------
    n_rounds : int, default=100
        Number of rounds; each adds one stump.
    class_weight : dict or "balanced", optional
        Weights of the classes, which multiply the sample weights in training; a class that is not
        in the dictionary weighs 1. ``"balanced"`` gives all classes the same total weight. Scores
        do not count them.
    n_bins : int or None, default=255
        Largest number of bins of a column. If a column has more distinct values, its thresholds lie
        between groups of about equal weight. None tries every threshold.
    max_features : float, default=1.0
        Share of the columns that a round searches; they are drawn again in each round.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of these draws.

    Attributes
    ----------
    rounds_ : tuple of Round
        The rounds: ``feature``, ``threshold``, ``subset`` (positions in ``classes_``), ``a``, ``b``
        and ``constants`` (zero for the classes of the subset), ``error`` and ``loss``.
    selected_ : ndarray of shape (n_selected,)
        The columns used, in the order in which they were first chosen.
    support_ : ndarray of shape (n_selected,)
        The same columns, rising.
    selected_names_ : list of str
        Their names in the order of ``selected_``; ``x0, x1, ...`` where ``X`` has no names.
    feature_importances_ : ndarray of shape (n_features,)
        For each column the sum of the drops of the loss in its rounds, divided by their sum.
    path_ : dict of ndarray
        One row per round: ``"feature"``, ``"threshold"``, ``"n_classes"`` (size of the subset),
        ``"error"`` (weighted squared error, of weights that sum to one), ``"loss"`` (mean
        exponential loss after the round) and ``"seconds"``.
    cost_ : Cost
        Operations per row: a comparison for each distinct stump, an addition for each class that
        shares it.
    null_loss_ : float
        Loss before the first round.
    n_iter_ : int
        Number of rounds of the model.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    n_features_in_ : int
        Number of columns seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, where all are strings.

    See Also
    --------
    ShareBoostClassifier : Every class has its own weights, all fitted again in each round.
    OneVsRestGreedy : Classes share nothing.

    Notes
    -----
    Columns are cut into bins once, and then take a byte per entry, sparse ones too. A round adds up
    the weights per column, bin and class, with ``n_samples * n_features * n_classes`` additions on
    all threads that numba may use. It then searches these tables, which take
    ``16 * n_features * n_bins * n_classes`` bytes. The exponential loss falls in every round, and
    the fit ends early if no stump lowers it. A keyboard interrupt after the first round keeps the
    rounds so far, with a warning.

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
    class_weight: ClassWeight = None
    n_bins: Annotated[int | None, maybe(Whole(least=2))] = 255
    max_features: Annotated[float, Number(above=0, most=1, why=_WHY_A_SHARE)] = 1.0
    random_state: Seed = None

    @with_callbacks
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
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
            X, y = self._check_labels(X, y)
            return self._fit(X, y, sample_weight)

    def _fit(
        self, X: np.ndarray | SparseMatrix, y: np.ndarray, sample_weight: ArrayLike | None
    ) -> Self:
        """Run the engine on validated data and keep the model."""
        given = apply_class_weights(self.class_weight, y, sample_weight)
        weight = check_weights(given, len(y), np.float64)
        classes, labels = np.unique(y, return_inverse=True)
        # Two classes have opposite labels: one score, positive for the second, is enough.
        several = len(classes) > 2
        target = labels if several else np.where(labels == 1, 0, -1)
        # Rows without weight are dropped here; ``bin_columns`` has already left them out of the
        # bins.
        kept = weight > 0.0
        bins = boosting.bin_columns(X, weight, self.n_bins)
        whole = FitTask.of_fit(self, X, y, sample_weight, self.n_rounds)

        def attributes(path: StumpPath) -> dict[str, Any]:
            return {"model_": StumpModel(path, Inputs.of(self), ClassOutputs(classes))}

        path = boosting.boost(
            bins,
            target[kept],
            weight[kept],
            n_outputs=len(classes) if several else 1,
            n_rounds=self.n_rounds,
            max_features=self.max_features,
            rng=random_generator(self.random_state),
            on_round=Rounds(whole, self.n_rounds, attributes).end,
        )
        self.model_ = attributes(path)["model_"]
        self._report(path)
        whole.end(dict)
        return self

    def _report(self, path: StumpPath) -> None:
        done = f"{len(path.rounds)} of {self.n_rounds} rounds"
        if path.interrupted:
            warn_caller(f"Interrupted after {done}, which are kept.", InterruptedFitWarning)
        elif path.exhausted:
            warn_caller(f"Stopped after {done}: no stump lowers the loss.", FewerFeaturesWarning)

    # Attributes of the model.

    def _importances(self) -> np.ndarray:
        # Rounding may let the loss of a last round rise.
        drops = -np.diff(self.path_["loss"], prepend=self.null_loss_)
        return np.bincount(self.path_["feature"], np.maximum(drops, 0.0), self.n_features_in_)

    @property
    def n_iter_(self) -> int:
        """Number of rounds of the model."""
        return self._get_model().size

    @property
    def rounds_(self) -> tuple[StumpRound, ...]:
        """The shared stumps, in the order in which they were added."""
        return tuple(self._get_model().path.rounds)

    @property
    def null_loss_(self) -> float:
        """Training loss before the first round."""
        return float(self._get_model().path.null_loss)

    @map_parts
    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """Return class probabilities.

        The expected exponential loss of a class is least at half the log-odds. A score ``H`` thus
        means the probability ``1 / (1 + exp(-2 H))`` of the class against the rest. These are
        divided by their sum.

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

    @map_parts
    def predict_log_proba(self, X: MatrixLike) -> np.ndarray:
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
            # ln(1 / (1 + exp(-2H))) without overflow, for the first class with -H in place of H.
            return np.asarray(-np.logaddexp(0.0, 2.0 * np.hstack([scores, -scores])))
        # Divided by their sum, in logarithms.
        logarithm = -np.logaddexp(0.0, -2.0 * scores)
        return np.asarray(logarithm - np.logaddexp.reduce(logarithm, axis=1, keepdims=True))

    def truncate(self, n_rounds: int) -> Self:
        """Return the model after fewer rounds.

        It needs no data and no fit.

        Parameters
        ----------
        n_rounds : int
            Number of rounds of the smaller model.

        Returns
        -------
        estimator
            A fitted copy; the model itself is unchanged.
        """
        return self._truncate(n_rounds, "n_rounds", "rounds")
