"""Many tasks learned together under one norm, each with its own loss."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Self

from mixnorm.data import BlockTable
from mixnorm.estimators._common.parameters import Loss, Switch
from mixnorm.estimators.mixed_norm.base import Penalty, Radius
from mixnorm.estimators.multitask.base import BaseMultiTask
from mixnorm.estimators.multitask.targets import MatricesLike, TargetsLike


@dataclass(eq=False, repr=False)
class MultiTaskLearner(BaseMultiTask):
    r"""Linear models for many tasks, learned together under one norm.

    With weights :math:`w_j` and an intercept :math:`b_j` for each task, minimises

    .. math:: \sum_j \sum_i v_{ij}\, \ell_j(\langle w_j, x_{ij}\rangle + b_j, y_{ij})
              + \alpha\, \|W\|

    where the sample weights :math:`v_{ij}` of each task sum to one, so that all tasks count alike
    whatever their size (:eq:`mean-loss`); or, where ``radius`` is given, the losses alone over
    :math:`\|W\| \le` ``radius``. Under the norm ``"l2,1"`` the tasks share few features, under
    ``"trace"`` a few directions; ``"l1,1"`` does not tie them together at all. Tasks have the same
    features; each may have data and a loss of its own.

    Parameters
    ----------
    norm : {"l1,1", "l2,1", "l2,2", "linf,1", "trace"} or norm object, default="l2,1"
        The norm, by name or as an object of :mod:`mixnorm.norms`. The weights have shape
        (n_features, n_tasks).
    losses : str, loss object, or list or dict of these, default="squared"
        The loss of all tasks, a list with one for each, or a dictionary by names or positions of
        tasks: ``"squared"``, ``"absolute"``, ``"huber"``, ``"epsilon_insensitive"``, ``"hinge"``,
        ``"squared_hinge"`` or ``"logistic"``. The last three are for tasks with two labels, of any
        type. The squared loss is half the squared difference.
    alpha : float, default=0.1
        Weight of the norm beside the sum of the tasks' weighted mean losses, for the weights of the
        columns as given: it is in units of the columns, unless ``standardize=True``. Not used where
        ``radius`` is given.
    radius : float, optional
        Largest norm. It replaces the penalty: ``alpha`` is then not used.
    fit_intercept : bool, default=True
        Fit an intercept for each task, which the norm does not see.
    standardize : bool, default=False
        Measure columns in standard deviations about their means, taken over the labelled rows of
        all tasks together. A feature has the same units in every task, and all tasks count alike,
        as in the objective. Constant columns get no weight. ``alpha``, ``radius`` and
        ``norm_value_`` are then those of the weights of such columns. ``coef_`` and ``intercept_``
        are for the columns as given. Without an intercept columns are divided by the root of their
        mean square, about zero.
    tol : float, default=1e-4
        Largest relative duality gap: the gap divided by the losses of the best intercepts alone.
    max_iter : int, default=1000
        Most iterations.
    warm_start : bool, default=False
        Start from the weights of the previous ``fit``.

    Attributes
    ----------
    coef_ : ndarray of shape (n_tasks, n_features)
        Weights.
    intercept_ : ndarray of shape (n_tasks,)
        Intercepts.
    tasks_ : list
        The names of the tasks: keys, or names of columns, where there are such; else 0, 1, ...
    classes_ : list
        For each task its two labels, the second of which has positive scores; None for tasks with
        numbers.
    support_ : ndarray of shape (n_selected,)
        Features that some task uses.
    selected_, selected_names_ : ndarray, list of str
        The same features, and their names; ``x0, x1, ...`` where ``X`` has no names.
    feature_importances_ : ndarray of shape (n_features,)
        Norms of the weights of each column in ``coef_``, divided by their sum; zero for columns not
        chosen.
    rank_ : int
        Numerical rank of ``coef_``.
    dual_gap_ : float
        Duality gap: ``objective_`` is at most this much above its optimum.
    objective_ : float
        What was minimised: the mean losses of all tasks together, plus ``alpha`` times the norm.
    norm_value_ : float
        The norm of the weights; with ``standardize=True`` in standard units.
    n_iter_ : int
        Iterations.
    n_features_in_ : int
        Number of columns seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, where all are strings.

    See Also
    --------
    MultiTaskLearnerCV : Chooses ``alpha`` by cross-validation.
    MixedNormRegressor : One loss for all outputs of a regression.

    Notes
    -----
    One ``X`` for all tasks, all labels present and one loss make the quickest case. With an ``X``
    for each task, what an iteration keeps is as large as the largest task times the number of
    tasks. The cost, the dtypes and the scale of the columns are as in
    :class:`MixedNormClassifier`; squared losses of tasks on very different scales should be scaled
    alike. To scikit-learn this is a regressor, also where tasks have labels.

    References
    ----------
    S. Kakade, S. Shalev-Shwartz, A. Tewari, "Regularization techniques for learning with
    matrices", JMLR 13, 2012, section 4.

    Examples
    --------
    One table of targets, with entries missing:

    >>> import numpy as np
    >>> from mixnorm import MultiTaskLearner
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 20))
    >>> Y = X[:, :2] @ rng.normal(size=(2, 5))
    >>> Y[rng.random(Y.shape) < 0.3] = np.nan
    >>> model = MultiTaskLearner("l2,1").fit(X, Y)
    >>> model.support_.tolist(), model.predict(X).shape
    ([0, 1], (100, 5))

    Tasks with data and losses of their own:

    >>> Xs = {"price": X[:60], "sold": X[60:]}
    >>> ys = {"price": X[:60, 0] + 3.0, "sold": np.where(X[60:, 0] > 0, "yes", "no")}
    >>> model = MultiTaskLearner("l2,1", {"price": "squared", "sold": "logistic"}).fit(Xs, ys)
    >>> model.tasks_, [labels.tolist() for labels in model.classes_[1:]]
    (['price', 'sold'], [['no', 'yes']])
    >>> bool(np.mean(model.predict(Xs["sold"], task="sold") == ys["sold"]) > 0.9)
    True
    """

    losses: Loss = "squared"
    alpha: Penalty = 0.1
    _: KW_ONLY
    radius: Radius = None
    warm_start: Switch = False

    def fit(
        self,
        X: MatricesLike | BlockTable,
        y: TargetsLike = None,
        sample_weight: TargetsLike = None,
    ) -> Self:
        """Fit all tasks.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), list, dict or BlockTable
            Training data of all tasks, or for each task its own; or a table of row blocks, with its
            own targets (a column for each task) and weights.
        y : array-like of shape (n_samples,) or (n_samples, n_tasks), or list or dict
            Targets. Beside one ``X`` a table, a data frame or a dictionary of columns, with NaN or
            None where a task has no label; beside several, a list or dictionary as ``X`` is.
        sample_weight : array-like of shape (n_samples,) or (n_samples, n_tasks), list or dict, \
optional
            Weights. Beside several ``X`` a list with an array (or None) for each task, or a
            dictionary.

        Returns
        -------
        self
            The fitted learner.
        """
        fitted: Self = super().fit(X, y, sample_weight)
        return fitted
