"""One class against the rest: greedy paths that share nothing."""

from __future__ import annotations

import copy
import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from mixnorm._array import Array, ArrayLike, MatrixLike
from mixnorm.estimators._common.blocks.parts import map_parts
from mixnorm.estimators._common.inputs import apply_class_weights, check_weights
from mixnorm.estimators._common.messages import warn_caller
from mixnorm.estimators._common.parameters import ClassWeight, Jobs
from mixnorm.estimators._common.progress import FitTask, all_or_nothing, with_callbacks
from mixnorm.estimators._common.staged import StagedClassifier
from mixnorm.estimators.shareboost.learners import ShareBoostClassifier
from mixnorm.estimators.shareboost.parameters import GreedyParameters
from mixnorm.models import ClassOutputs, Inputs, OneVsRestModel, Path
from mixnorm.pools import Pool, PreparedPool, check_numpy, working_dtype


class _OneVsRest(StagedClassifier):
    """Declares the kind of the model."""

    model_: OneVsRestModel


@dataclass(eq=False, repr=False)
class OneVsRestGreedy(GreedyParameters, _OneVsRest):
    r"""Classifier in which every class chooses features of its own.

    This is the baseline for sharing: the greedy engine of :class:`ShareBoostClassifier` separates
    each class from the rest. It minimises

    .. math:: \sum_i w_i\, \ell(W^{(c)} x_i + b^{(c)}, 1[y_i = c]) + \alpha\, \Omega(W^{(c)})

    over ``n_features_to_select`` features of class :math:`c` alone. ``n_features_used_`` has the
    number of features that all classes need together. With two classes there is one path.

    Parameters
    ----------
    n_features_to_select : int, optional
        Number of features of each class. None chooses 20, or all if there are fewer.
    alpha, loss, pool, max_inputs, cost_budget, fit_intercept, random_state
        As in :class:`ShareBoostClassifier`, for the path of each class. Columns and costs are
        counted by class. The pool is prepared once for all classes.
    options : GreedyOptions, optional
        As in :class:`ShareBoostClassifier`, with ``tune=0``: the classes share one prepared pool,
        so that none of them may adjust its features.
    class_weight : dict or "balanced", optional
        Weights of the classes, which multiply the sample weights in training; a class that is not
        in the dictionary weighs 1. ``"balanced"`` gives all classes the same total weight. Scores
        do not count them.
    n_jobs : int, default=None
        Number of classes fitted at the same time, in processes; None means 1, -1 all processors.

    Attributes
    ----------
    estimators_ : list of ShareBoostClassifier
        The model of each class, with labels False and True. For two classes, there is one model, of
        the second.
    n_features_used_ : ndarray of shape (n_rounds,)
        Distinct features (groups, or other atoms of the pool) that all classes use together after
        1, 2, ... rounds each.
    selected_ : ndarray of shape (n_selected,)
        The columns that some class uses: round by round, in the order of the classes.
    support_ : ndarray of shape (n_selected,)
        The same columns, rising.
    selected_names_ : list of str
        Their names in the order of ``selected_``; ``x0, x1, ...`` where ``X`` has no names.
    feature_importances_ : ndarray of shape (n_features,)
        For each column the norm over classes of its weights, as in :class:`ShareBoostClassifier`,
        divided by their sum.
    path_ : dict of ndarray
        One row per round of all classes: ``"features"`` (a tuple of the choice of each class, None
        where its path has ended), ``"n_features"`` (as ``n_features_used_``), ``"loss"`` (mean over
        classes of the weighted mean training loss) and ``"seconds"``.
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) for two classes
        Weights, zero for columns that a class does not use. Only for pools whose atoms are columns.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Intercept.
    options_ : GreedyOptions
        The options in use: those given, or the defaults.
    cost_ : Cost
        Operations per row; each feature is computed once.
    null_loss_ : float
        Mean over classes of the training loss with no features.
    n_iter_ : int
        Iterations of all corrective steps together.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    n_features_in_ : int
        Number of columns seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, where all are strings.

    See Also
    --------
    ShareBoostClassifier : One choice of features for all classes.
    JointBoostClassifier : Stumps shared by subsets of the classes.

    Notes
    -----
    The class with the largest score is predicted. The probability of each class against the rest
    comes from its own model; these are divided by their sum. A keyboard interrupt ends the fit
    without a result, because models of some classes only are of no use.

    References
    ----------
    S. Shalev-Shwartz, Y. Wexler, A. Shashua, "ShareBoost: efficient multiclass learning with
    feature sharing", NeurIPS 2011, section 5 (Figure 2).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mixnorm import OneVsRestGreedy
    >>> X, y = load_digits(return_X_y=True)
    >>> model = OneVsRestGreedy(n_features_to_select=5).fit(X, y)
    >>> len(model.estimators_), model.n_features_used_.shape
    (10, (5,))
    >>> bool(model.n_features_used_[-1] > 20)
    True
    """

    _: KW_ONLY
    class_weight: ClassWeight = None
    n_jobs: Jobs = None

    def _check_together(self) -> None:
        tune = self.options_.tune
        if tune:
            raise ValueError(f"tune={tune} adjusts features, which the classes share. Set tune=0.")

    @with_callbacks
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Choose features for every class and fit.

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
        self._make_learner()._loss()  # raises for a loss that is not allowed
        with all_or_nothing(self):
            X, y = self._check_labels(X, y)
            check_numpy(X, type(self).__name__)
            self.model_ = self._fit_classes(X, y, sample_weight)
            return self

    def _make_learner(self) -> ShareBoostClassifier:
        """Return the estimator of one class, with the same parameters."""
        own, names = self.get_params(deep=False), ShareBoostClassifier().get_params(deep=False)
        del names["class_weight"]  # multiplied into the weights by the classes of all rows
        return ShareBoostClassifier(**{name: own[name] for name in names if name in own})

    def _fit_classes(
        self, X: Array, y: np.ndarray, sample_weight: ArrayLike | None
    ) -> OneVsRestModel:
        """Return the models of all classes; the pool is bound to the data once."""
        from sklearn.utils.parallel import Parallel, delayed

        classes, labels = np.unique(y, return_inverse=True)
        plain = self._make_learner()
        pool = copy.deepcopy(plain._pool())
        given = apply_class_weights(self.class_weight, y, sample_weight)
        # The columns are the same for every class; only the targets differ.
        data = plain._bind_pool(pool, X, check_weights(given, X.shape[0], working_dtype(X)))
        pool = data.pool  # with what it has learned from the data
        plain.n_features_in_ = self.n_features_in_
        outputs = ClassOutputs(classes, copy.deepcopy(plain._loss()))
        # The paths of two classes would mirror each other.
        own = range(len(classes)) if len(classes) > 2 else [1]
        progress = FitTask.of_fit(self, X, y, sample_weight, len(own))
        jobs = (
            delayed(_fit_class)(copy.copy(plain), pool, data, X, labels == c, given) for c in own
        )
        paths: list[Path] = []
        messages: dict[type[Warning], list[tuple[Any, str]]] = {}

        task = progress.task("class")
        for path, warned in Parallel(n_jobs=self.n_jobs, return_as="generator")(jobs):
            if path.interrupted:
                raise KeyboardInterrupt
            for category, message in warned:
                messages.setdefault(category, []).append((classes[own[len(paths)]], message))
            paths.append(path)
            task.end()
            if len(paths) < len(own):
                task = progress.task("class")
        _report(messages, len(own))
        model = OneVsRestModel(tuple(paths), pool, Inputs.of(self), outputs)
        progress.end(lambda: {"model_": model})
        return model

    # Attributes of the model.

    def _importances(self) -> np.ndarray:
        return np.hypot.reduce([one._importances() for one in self.estimators_], axis=0)

    @property
    def estimators_(self) -> list[ShareBoostClassifier]:
        """The fitted classifier of each class against the rest; for two classes, a single one."""
        made = []
        for member in self._get_model().members:
            plain = self._make_learner()
            plain.model_, plain.n_features_in_ = member, member.inputs.n_features
            if member.inputs.names is not None:
                plain.feature_names_in_ = member.inputs.name_array
            made.append(plain)
        return made

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the columns, a row per class."""
        model = self._get_model()
        if not model.pool.plain:
            raise AttributeError(
                f"{type(self).__name__} has no coef_ for pools whose atoms are not columns of X. "
                "Each of estimators_ has the weights of its own atoms."
            )
        return np.concatenate([member.coef[0] for member in model.members])

    @property
    def intercept_(self) -> np.ndarray:
        """Intercept of every class."""
        return np.concatenate([member.coef[1] for member in self._get_model().members])

    @property
    def n_features_used_(self) -> np.ndarray:
        """The number of different features of all classes together, after 1, 2, ... rounds."""
        return np.asarray(self._get_model().n_used)

    @property
    def n_iter_(self) -> int:
        """Iterations of all corrective steps together."""
        return sum(one.n_iter_ for one in self.estimators_)

    @map_parts
    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """Return class probabilities.

        The model of each class gives the probability of the class against the rest (see
        :meth:`ShareBoostClassifier.predict_proba`). These are divided by their sum.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            New data.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows sum to one, columns in the order of ``classes_``.
        """
        return np.asarray(self._get_model().probabilities(self._check_new(X)))

    def truncate(self, n_features: int) -> Self:
        """Return the model of the paths that has fewer features per class.

        It needs no data and no fit.

        Parameters
        ----------
        n_features : int
            Number of features per class; classes with a shorter path keep all features.

        Returns
        -------
        estimator
            A fitted copy; the model itself is unchanged.
        """
        return self._truncate(n_features, "n_features_to_select", "features per class")


def _fit_class(
    plain: ShareBoostClassifier,
    pool: Pool,
    data: PreparedPool,
    X: Array,
    own: np.ndarray,
    sample_weight: ArrayLike | None,
) -> tuple[Path, list[tuple[type[Warning], str]]]:
    """Return the path of one class, and the warnings of its fit.

    Its rounds are not reported to callbacks, since the model of one class is of no use to them.
    """
    with warnings.catch_warnings(record=True) as caught:
        # Every warning is caught: workers cannot show it, and one class's would hide that of
        # another.
        warnings.simplefilter("always")
        plain._fit(X, own, sample_weight, pool, data=data)
    return plain.model_.path, [(warning.category, str(warning.message)) for warning in caught]


def _report(messages: dict[type[Warning], list[tuple[Any, str]]], n_classes: int) -> None:
    """Warn once of each kind, instead of once per class."""
    for category, cases in messages.items():
        (label, message), classes = cases[0], len({label for label, _ in cases})
        if classes == n_classes and len({message for _, message in cases}) == 1:
            warn_caller(message, category)
        else:
            count = f"{classes} of {n_classes} classes, the first of them {label}"
            warn_caller(f"For {count}: {message}", category)
