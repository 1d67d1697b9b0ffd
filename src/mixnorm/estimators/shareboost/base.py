"""Base class of the ShareBoost estimators: the fit, its path, and smaller models of the path."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Self

import joblib
import numpy as np
from sklearn.base import BaseEstimator

from mixnorm._array import Array, ArrayLike, MatrixLike, to_numpy
from mixnorm._threads import one_thread
from mixnorm.data import BlockTable, find_table
from mixnorm.engines import greedy
from mixnorm.engines.penalties import as_penalty
from mixnorm.estimators._common.arrays import (
    as_table,
    cast_path,
    check_pool_takes,
    check_shape,
    new_table,
    scale_path,
    unscale_path,
)
from mixnorm.estimators._common.blocks.tables import require_target, require_y, validate_table
from mixnorm.estimators._common.inputs import (
    DEFAULT_SIZE,
    apply_class_weights,
    check_weights,
    total_weight,
)
from mixnorm.estimators._common.messages import warn_caller
from mixnorm.estimators._common.progress import (
    CallbackSupportMixin,
    FitTask,
    Rounds,
    all_or_nothing,
    with_callbacks,
)
from mixnorm.estimators._common.selector import ColumnSelectorMixin
from mixnorm.estimators._common.staged import StagedMixin
from mixnorm.estimators.shareboost.blocks import BlockTraining, CompressedRows
from mixnorm.estimators.shareboost.checkpoint import Checkpoint
from mixnorm.estimators.shareboost.parameters import PathParameters
from mixnorm.exceptions import (
    FewerFeaturesWarning,
    InterruptedFitWarning,
    LightRowsWarning,
    NotConvergedWarning,
)
from mixnorm.models import ClassOutputs, Inputs, NumberOutputs, Path, PathModel, Predictor
from mixnorm.pools import (
    Columns,
    Pool,
    PreparedPool,
    as_pool,
    bind,
    scale_name,
    working_dtype,
)

# Weights that are smaller than this on average are probably shares of rows, not counts.
_LEAST_WEIGHT_OF_COUNTS = 0.1


@dataclass(frozen=True, eq=False)
class _Training:
    """Training data as the engine takes them, and what scores mean."""

    data: PreparedPool
    target: Any
    n_outputs: int
    weight: Array
    n_rows: float
    outputs: ClassOutputs | NumberOutputs
    #: What tells a table of blocks from others: statistics, and the rows and targets of a sample.
    facts: tuple[Any, ...] = ()


class BaseShareBoost(
    PathParameters, StagedMixin, ColumnSelectorMixin, CallbackSupportMixin, BaseEstimator
):
    """Base of the classifier and the regressor, which add a loss and the form of the targets.

    The engine computes on the device of ``X``. The model is kept on the host, so that it can be
    stored and used without the library and the device of the fit. Attributes follow ``X``.
    """

    model_: PathModel
    #: A parameter of the classifiers.
    class_weight: Any = None
    #: A hash of the settings that must not change if the path is to be continued.
    _resume: str

    @with_callbacks
    def fit(
        self, X: MatrixLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Choose features and fit.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or a table of blocks
            Training data. A table of row blocks (:func:`mixnorm.data.read_parquet`,
            :func:`mixnorm.data.from_arrays`, Dask collections) need not fit into memory.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Class labels of any type, or targets. A table of blocks has its own.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        table = find_table(X, y, sample_weight)
        with all_or_nothing(self):
            if table is not None:
                return self._fit_table(table)
            X, pool = self._training_table(X)
            X, y = self._check_training(X, require_y(self, y))
            return self._fit(X, y, sample_weight, pool)

    def _fit(
        self,
        X: Array,
        y: Array,
        sample_weight: ArrayLike | None,
        pool: Pool,
        progress: FitTask | None = None,
        data: PreparedPool | None = None,
    ) -> Self:
        """Run the engine on validated data and keep the model.

        The rounds are tasks of a new fit, or of a task below ``progress`` if that is given.
        ``data`` is the pool bound to ``X``, if it is bound already.
        """
        previous = self._find_previous()
        if previous is not None:
            self._check_continues(previous, X.shape[1])
        check_pool_takes(pool, X)
        # The weights of classes come before rows are normalised, so that alpha="auto" counts them
        # too.
        given = apply_class_weights(self.class_weight, y, sample_weight)
        target, n_outputs, outputs = self._encode_targets(X, y, given)
        weight = check_weights(given, X.shape[0], working_dtype(X), like=X)
        n_rows = total_weight(given, X.shape[0])
        if given is not None and isinstance(self._get_alpha(), str):
            self._warn_of_light_rows(n_rows, weight)
        # Only now is the fit sure to begin: an error above leaves the libraries of the last fit.
        self._remember(X, y)
        # Binding does what is done once: ranges, scales and bins of columns.
        data = self._bind_pool(pool, X, weight) if data is None else data
        encoded = outputs.loss.encode(target, n_outputs, weight)
        training = _Training(data, encoded, n_outputs, weight, n_rows, outputs)
        return self._run(training, previous, (X, y, sample_weight), progress)

    def _fit_table(self, table: BlockTable, progress: FitTask | None = None) -> Self:
        """Run the engine on a table of row blocks and keep the model."""
        validate_table(self, table)
        require_target(self, table)
        previous = self._find_previous()
        if previous is not None:
            self._check_continues(previous, table.shape[1])
        own = table.for_one_fit()
        try:
            # The engine's own products are small. Threads of BLAS go on turning after each, and
            # would take the processors from the workers.
            with one_thread():
                return self._run(self._train_on(own), previous, (table, None, None), progress)
        finally:
            own.forget()

    def _train_on(self, table: BlockTable) -> _Training:
        """Return a table of row blocks as the engine takes it."""
        dtype = working_dtype(np.empty(0, dtype=table.dtype))
        found, outputs, n_outputs = self._survey_table(table, dtype)
        options, pool = self.options_, copy.deepcopy(self._pool())
        if isinstance(outputs, NumberOutputs) and found.compresses(pool, outputs.loss):
            small = found.compress(outputs, bool(self.fit_intercept))
            data = self._bind_compressed(pool, small)
            facts = small.X, small.target, small.weight
            return _Training(
                data, small.target, n_outputs, small.weight, found.n_rows, outputs, facts
            )
        bound = found.data if options.scan == "sample" else replace(found.data, screen=None)
        scale, intercept = options.scale, self.fit_intercept
        blocks = pool.prepare_blocks(bound, scale=scale, fit_intercept=intercept)
        moments, sample = found.data.statistics, found.data.sample
        facts = (moments.low, moments.high, moments.mean, moments.deviation)
        facts += (sample.X, sample.weight, found.target.sample, found.survey.target)
        return _Training(
            blocks, found.target, n_outputs, found.weight, found.n_rows, outputs, facts
        )

    def _bind_compressed(self, pool: Any, small: CompressedRows) -> PreparedPool:
        """Return the columns bound to a small table with the same squared loss."""
        options = {"scale": self.options_.scale, "fit_intercept": self.fit_intercept}
        found: PreparedPool = pool.prepare_small(
            small.X, weight=small.weight, statistics=small.statistics, **options
        )
        return found

    def _survey_table(
        self, table: BlockTable, dtype: Any
    ) -> tuple[BlockTraining, ClassOutputs | NumberOutputs, int]:
        """Return a table as the engine takes it, what scores mean, and how many there are."""
        raise NotImplementedError

    def _run(
        self,
        training: _Training,
        previous: PathModel | None,
        given: tuple[Any, Any, Any],
        progress: FitTask | None = None,
    ) -> Self:
        """Run the engine on bound data and keep the model; ``given`` are X, y and weights."""
        data, outputs, options = training.data, training.outputs, self.options_
        # Columns that do not vary cannot be chosen, and do not count as available.
        wanted = self._count_features(int(data.n_usable))
        unit = self._alpha_unit(outputs)
        # Weights of the model are for columns as given, those of the engine for scaled columns.
        start = None
        if previous is not None:
            start = scale_path(previous.path, data, training.weight, unit)
        left = wanted if start is None else max(0, wanted - len(start.rounds))
        if options.backward:
            # Callbacks receive the largest number of rounds.
            left = 2 * (wanted + options.backward) - 1  # forward and backward
        left += options.tune
        if progress is None:
            whole = FitTask.of_fit(self, *given, left)
        else:
            whole = progress.task("refit", left)

        def attributes(path: Path) -> dict[str, Any]:
            known = data.pool  # it may learn in each round
            path = unscale_path(path, data, unit)
            if isinstance(given[0], BlockTable):  # sums over blocks are in double precision
                path = cast_path(path, working_dtype(np.empty(0, dtype=given[0].dtype)))
            return {"model_": PathModel(path, known, Inputs.of(self), outputs)}

        rounds = Rounds(whole, left, attributes)
        saved = self._checkpoint(training, given[0])
        path = greedy.select(
            data,
            outputs.loss,
            training.target,
            n_atoms=wanted,
            n_outputs=training.n_outputs,
            weight=training.weight,
            n_rows=training.n_rows,
            start=start,
            on_round=rounds.end,
            resume=None if saved is None else saved.read(),
            save=None if saved is None else saved.write,
            **self._engine_options(unit),
        )
        self.model_ = attributes(path)["model_"]
        self._check_weights_fit()
        self._resume = self._settings()
        self._report(path, wanted)
        whole.end(dict)
        return self

    def _checkpoint(self, training: _Training, X: Any) -> Checkpoint | None:
        """Return the file that a table of blocks names for the path of its fit, if it does."""
        if not isinstance(X, BlockTable) or X.checkpoint is None:
            return None
        size = self.n_features_to_select, X.shape, X.block_rows, X.names, training.n_rows
        options = self.options_.get_params(deep=False)
        mark = joblib.hash(
            (self._settings(), options, size, training.facts, vars(training.outputs))
        )
        return Checkpoint(X.checkpoint, str(mark))

    def _bind_pool(self, pool: Pool, X: Array, weight: Array) -> Any:
        """Return the pool bound to the training data."""
        return bind(
            pool,
            X,
            weight=weight,
            scale=self.options_.scale,
            fit_intercept=self.fit_intercept,
            random_state=self.random_state,
        )

    def _training_table(self, X: MatrixLike) -> tuple[Any, Any]:
        """Return ``X`` with one row per image, and the pool to use, which knows their shape."""
        pool, previous = copy.deepcopy(self._pool()), self._find_previous()
        known = None if previous is None else previous.pool
        if known is not None and known.learned:  # the path has atoms of this pool
            return new_table(X, known), known
        X, shape = as_table(X, pool)
        if shape is None:
            return X, pool
        check_shape(shape, known)
        return X, pool.for_images(shape)

    def _engine_options(self, unit: float) -> dict[str, Any]:
        """Return the keyword arguments of the engine that are parameters."""
        alpha, options = self._get_alpha(), self.options_.get_params(deep=False)
        del options["scale"], options["scan"]  # the pool has applied them
        return {
            "alpha": alpha if isinstance(alpha, str) else float(alpha) * unit,
            "max_inputs": self.max_inputs,
            "budget": self.cost_budget,
            "fit_intercept": self.fit_intercept,
            **options,
        }

    def _get_alpha(self) -> float | str:
        """Return the weight of the penalty, or ``"auto"``."""
        return self.alpha

    def _alpha_unit(self, outputs: ClassOutputs | NumberOutputs) -> float:
        """Return the factor of ``alpha`` for targets that are divided by their unit.

        The loss is divided by the square of the unit, while penalties have several degrees.
        """
        # Inverses of smaller units may overflow, and a penalty of 1e200 leaves no weights anyway.
        return float(max(outputs.unit, 1e-200) ** (as_penalty(self.options_.penalty).degree - 2))

    def _settings(self) -> str:
        """Return a hash of the settings without which a path cannot be continued."""
        alpha, options = self._get_alpha(), self.options_
        alpha = alpha if isinstance(alpha, str) else float(alpha)
        scale = scale_name(options.scale)
        flags = (alpha, int(options.backward), bool(self.fit_intercept), scale)
        try:  # not of a pickle, which depends on the parts that objects share
            own = (self._pool(), self._loss(), options.penalty, self.class_weight)
            return str(joblib.hash((*own, *flags)))
        # Without a hash two settings cannot be compared; such a path is continued by the same
        # object alone.
        except (pickle.PicklingError, AttributeError, TypeError):  # a class made in a function
            return f"of its own: {id(self)}"

    def _check_continues(self, previous: PathModel, n_columns: int) -> None:
        """Raise unless the previous path can be continued with these columns and settings."""
        width, backward = previous.inputs.n_features, self.options_.backward
        if width != n_columns:
            refuse_to_continue(f"continues a path of {width} columns, but X has {n_columns}")
        if getattr(self, "_resume", None) != self._settings():
            refuse_to_continue(
                "continues a path, but pool, loss, class_weight, alpha, penalty, backward, "
                "fit_intercept or scale has changed since"
            )
        if backward:
            refuse_to_continue(
                f"cannot continue a path made with backward={backward}, because the way back "
                "changes models of all sizes"
            )

    def _warn_of_light_rows(self, n_rows: float, weight: Array) -> None:
        count = int(np.count_nonzero(to_numpy(weight)))
        if n_rows < _LEAST_WEIGHT_OF_COUNTS * count:
            given = "sample_weight" + " times class_weight" * (self.class_weight is not None)
            warn_caller(
                f"{given} adds up to {n_rows:.3g} for {count} rows. alpha='auto' counts rows "
                "by their weights, so that it finds little data and keeps the model close to a "
                f"constant. Scale sample_weight to add up to {count}, or give alpha as a number.",
                LightRowsWarning,
            )

    def _find_previous(self) -> PathModel | None:
        """Return the model whose path is to be continued, if there is one."""
        return getattr(self, "model_", None) if self.warm_start else None

    def _loss(self) -> Any:
        """Return the loss object that the parameter ``loss`` names."""
        raise NotImplementedError

    def _check_training(self, X: MatrixLike, y: ArrayLike) -> tuple[Any, Any]:
        """Return the checked training data."""
        raise NotImplementedError

    def _encode_targets(
        self, X: Array, y: Array, sample_weight: ArrayLike | None
    ) -> tuple[Any, int, Any]:
        """Return the targets for the loss, the number of scores, and the outputs of the model."""
        raise NotImplementedError

    def _pool(self) -> Any:
        return Columns() if self.pool is None else as_pool(self.pool)

    def _count_features(self, available: int) -> int:
        """Return the number of features to choose; warn if it is more than the available ones."""
        # A budget is a limit by itself; without one 20 features are a size that people still read.
        if self.n_features_to_select is None:
            return available if self.cost_budget is not None else min(DEFAULT_SIZE, available)
        if self.n_features_to_select > available:
            warn_caller(
                f"n_features_to_select={self.n_features_to_select} asks for more features than "
                f"the {available} that vary; all of these are chosen. Lower "
                "n_features_to_select, or leave it at None.",
                FewerFeaturesWarning,
            )
        return min(int(self.n_features_to_select), available)

    def _report(self, path: Path, wanted: int) -> None:
        """Warn of a path that ended early or was not solved to its tolerance."""
        done = len(path.rounds)
        if path.interrupted:
            message = f"Interrupted after {done} of {wanted} rounds, which are kept."
            if "warm_start" in self.get_params(deep=False):
                message += " Set warm_start=True and call fit again to go on."
            warn_caller(message, InterruptedFitWarning)
        elif path.exhausted and (self.n_features_to_select is not None or not self._limits()):
            warn_caller(
                f"Stopped after {done} of {wanted} features: no other feature{self._limits()} "
                "lowers the loss.",
                FewerFeaturesWarning,
            )
        if not path.converged:
            options = self.options_
            gap = max(step.gap for step in path.rounds if not step.converged)
            warn_caller(
                f"A corrective step stopped after max_iter={options.max_iter} with an estimated "
                f"gain of {gap:.1e} left (tol {options.tol:g}). Raise max_iter, raise alpha, or "
                "raise tol.",
                NotConvergedWarning,
            )

    def _limits(self) -> str:
        """Return in words the limits that may end a path early, as the user wants."""
        names = ("max_inputs", "cost_budget")
        given = [f"{name}={value}" for name in names if (value := getattr(self, name)) is not None]
        return f" within {' and '.join(given)}" if given else ""

    def _check_weights_fit(self) -> None:
        """Raise for weights that overflow, as columns are so much smaller than ``y``."""
        if not np.all(np.isfinite(self.model_.weights)):
            unit = self.model_.outputs.unit
            beside = "" if unit == 1.0 else f" beside targets that vary by {unit:.0e}"
            raise ValueError(
                f"X has columns that are so small{beside} that their weights overflow. Multiply X "
                "by a power of ten (StandardScaler brings all columns to one size)."
            )

    # Attributes of the model.

    def _importances(self) -> np.ndarray:
        model = self._get_model()
        if model.pool.plain:
            return super()._importances()
        width = model.inputs.n_features
        ends = np.cumsum([model.pool.n_columns(atom, width) for atom in model.support], dtype=int)
        found = np.zeros(width)
        for atom, weights in zip(model.support, np.split(model.weights, ends), strict=False):
            read = np.unique(model.pool.feature_indices([atom], width))
            # An atom may read several columns, which share its weight.
            found[read] += np.hypot.reduce(weights.ravel()) / len(read)
        return found

    @property
    def coef_(self) -> Any:
        """Weights: of every column of ``X``, or of every atom where atoms are not columns."""
        return self._follow_fit(self._get_model().coef[0])

    @property
    def intercept_(self) -> Any:
        """Intercept."""
        intercept = self._get_model().coef[1]
        return intercept if isinstance(intercept, float) else self._follow_fit(intercept)

    @property
    def alpha_(self) -> Any:
        """The weight of the penalty in the model of each size."""
        return self._follow_fit(np.asarray([step.alpha for step in self._get_model().path.rounds]))

    @property
    def pool_(self) -> Any:
        """The pool of the fit, with what it has learned from the data."""
        return self._get_model().pool.given

    @property
    def atoms_(self) -> list[Any]:
        """The atoms of the model, in the order of its weights, named as in ``path_``."""
        return list(self._get_model().labels)

    def _check_new(self, X: MatrixLike) -> Any:
        pool = self._get_model().pool
        X = self._new_table(X)
        check_pool_takes(pool, X)
        return X

    def _new_table(self, X: MatrixLike) -> Any:
        return super()._new_table(new_table(X, self._get_model().pool))

    def predictor(self) -> Predictor:
        """Return the model as a fast function of arrays, for single rows and inner loops.

        Returns
        -------
        Predictor
            Takes one row or several, and returns the same as ``predict`` without checks.
        """
        return Predictor(self._get_model())

    def truncate(self, n_features: int) -> Self:
        """Return the model of the path that has fewer features.

        It needs no data and no fit.

        Parameters
        ----------
        n_features : int
            Number of features of the smaller model (of groups, where the pool has groups).

        Returns
        -------
        estimator
            A fitted copy; the model itself is unchanged.
        """
        return self._truncate(n_features, "n_features_to_select")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.array_api_support = True
        return tags


def refuse_to_continue(reason: str) -> NoReturn:
    """Raise the error of a path that ``warm_start`` cannot continue."""
    raise ValueError(f"warm_start=True {reason}. Set warm_start=False to start over.")
