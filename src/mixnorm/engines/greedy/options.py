"""Options of the greedy engine for experts, in one object."""

from __future__ import annotations

from dataclasses import dataclass

from mixnorm._params import Parameters
from mixnorm.engines.penalties import Penalty


@dataclass(frozen=True, kw_only=True)
class GreedyOptions(Parameters):
    r"""Options for experts of the ShareBoost estimators; the defaults suit most data.

    Give one object as ``options`` of :class:`~mixnorm.ShareBoostClassifier` and its relatives. A
    grid search varies an option as ``options__rule``. The estimators check the values in ``fit``.

    Parameters
    ----------
    penalty : {"ridge", "linf,1", "l1"} or penalty object, default="ridge"
        The penalty on large weights. ``"ridge"`` is the sum of their squares. ``"linf,1"`` is the
        sum over features of the largest magnitude among a feature's weights, smoothed. ``"l1"`` is
        the sum of magnitudes, which leaves single weights of chosen features at exactly zero. The
        objects are in :mod:`mixnorm.engines.penalties`. For targets that are numbers, the smoothing
        of ``"linf,1"`` is in units of the largest deviation of the targets from their mean. Change
        it to get weights that are zero, or models as in the paper.
    rule : {"joint", "l1", "l2", "line", "column", "exact"}, default="joint"
        How the next feature is chosen. ``"l1"`` (the paper's) and ``"l2"`` go by the norm of its
        gradient over classes. The others compare eight features, those whose weights alone would
        gain most: ``"line"`` minimises the loss along the gradient, ``"column"`` takes a Newton
        step in the weights of the new feature, ``"joint"`` one in the weights of all features, and
        ``"exact"`` fits all weights again with each of the eight in turn. ``"l1"`` and ``"l2"`` are
        faster, and ``"exact"`` is slower and sometimes better.
    swaps : int, default=0
        Most replacement steps after each round. A step replaces the older feature that costs least
        to drop by the best other one, if that lowers the objective. Models of successive sizes are
        then not nested; the path stores the features of each round. Raise it for a better model of
        few features.
    backward : int, default=0
        Choose this many features more, then drop features one at a time, always the one that costs
        least, fit the others again, and keep the better model of each size. Such a path cannot be
        continued by ``warm_start``. Raise it for better small models.
    tune : int, default=0
        Most sweeps at the end that adjust the chosen features together with all weights. The pool
        must have features with parameters, such as the templates of
        :class:`~mixnorm.pools.Patches`. Only the largest model is tuned. It then fits the training
        data far better, which helps where there are many rows, deformed copies included, and
        overfits where there are few. :class:`~mixnorm.OneVsRestGreedy` takes 0 only.
    atoms_per_round : int, default=1
        Number of features chosen from one scan of the pool. They still come in one by one, and the
        path still has a model for every number of features. The choice is faster, but less careful.
        Raise it where scans take most of the time: large pools, many rows.
    rounds_per_input : int, default=1
        Number of features to choose before one more column of ``X`` may be read, as long as others
        help. A larger number uses each column fully before the next is chosen: for the best model
        that reads ten columns, columns come in slowly, while the best small model takes them
        quickly. Raise it together with ``max_inputs``, for pools that make several features of a
        column.
    scale : {"std", "max"} or bool, default="std"
        The unit of each column, for the choice and for the penalty: its standard deviation
        (``"std"``, also True; the mean does not matter, as there is an intercept), its largest
        magnitude (``"max"``, the paper's), or none (False). Stumps, boxes, pieces and patches keep
        their range. ``coef_`` is for the columns as given. Change it where the columns already
        have a common unit.
    tol : float, default=1e-4
        The last round ends when about ``tol`` times the objective is left to gain, earlier rounds
        at twenty times that. (With the squared loss, one iteration solves a round, so that this
        hardly matters.) Lower it for exact weights.
    max_iter : int, default=500
        Largest number of iterations of one corrective step. Raise it if a warning says so.
    scan : {"sample", "exact"}, default="sample"
        How the columns of a table of row blocks are compared; data in memory are always compared on
        all rows. ``"sample"`` ranks them on a sample of rows and computes the leaders on all rows;
        a column that bounds cannot rule out is computed too, so that the choice is that of
        ``"exact"`` up to a probability of a millionth. ``"exact"`` reads all columns in each round.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mixnorm import GreedyOptions, ShareBoostClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> options = GreedyOptions(rule="l1", swaps=1)
    >>> model = ShareBoostClassifier(n_features_to_select=5, options=options).fit(X, y)
    >>> model.set_params(options__rule="l2").options.rule
    'l2'
    """

    penalty: str | Penalty = "ridge"
    rule: str = "joint"
    swaps: int = 0
    backward: int = 0
    tune: int = 0
    atoms_per_round: int = 1
    rounds_per_input: int = 1
    scale: bool | str = "std"
    tol: float = 1e-4
    max_iter: int = 500
    scan: str = "sample"
