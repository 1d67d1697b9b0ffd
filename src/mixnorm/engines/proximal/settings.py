"""The numbers that shape the algorithms of the proximal engine, in one object."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ProximalSettings:
    """Numbers that decide how fast the engine works, and when it gives up.

    Every result carries its own duality gap, so that no setting can make a result wrong. A limit
    that is too low ends with a gap that is too large; any other setting only changes the time. The
    defaults suit dense and sparse data of a few rows up to millions. Constants that only guard
    against rounding are not here but beside the code that they protect.

    *Effort* is work in evaluations of the loss: one is about the cost of a pass over the scores. An
    *iteration* is what ``max_iter`` counts, and a *step* is one proximal step within it.

    Attributes
    ----------
    patience : int
        Iterations in a row without progress after which a fit ends. Momentum can hold the gap up
        for tens of iterations before it falls again, so that fewer would end fits that converge.
    progress : float
        Factor by which the gap must fall to count as progress. One per cent is far above the
        rounding of a gap, and far below what a useful iteration gains.
    effort : float
        Effort allowed for each iteration of ``max_iter``. Most iterations take a few evaluations;
        twenty leaves room for line searches and for solving smoothed problems.
    few_iterations : int
        Iterations whose effort is always allowed: below this ``max_iter`` alone limits the work, as
        a user expects who sets it to a small number.
    largest_share, least_share : float
        Effort that one ``alpha`` of a path may take, in shares of the effort left and of the whole.
        The first keeps one hard value from using up the path; the second lets every value start.
    penalties_per_effort : int
        Values of ``alpha`` that the effort of a path is meant for. Longer paths get proportionally
        more, so that a finer grid does not end earlier.
    float32_share_of_tol : float
        Share of the tolerance that fits in single precision aim at. Their scores drift a little,
        and the gap that is reported at the end comes from scores computed anew.
    least_model_rows, rows_per_column : int
        Samples that shape an inexact model: at least so many, and so many for each of its columns.
        The model only guides steps, and the curvature of a few thousand samples is close enough.
    largest_dense_spectrum : int
        Side of matrices whose eigenvalues are all computed. Lanczos' method, which finds the
        largest alone, is faster for larger matrices.
    spectral_margin : float
        Relative amount added to the largest eigenvalue, which Lanczos' method approaches from
        below. Ten times its tolerance, so that the step size stays below the bound.
    row_model_age, matrix_model_age : int
        Iterations that one model of the curvature serves, with and without a sum of row norms.
        Curvature changes slowly; a model costs as much as many steps, and an old one makes steps
        worse. Newton steps, which sums of row norms have in addition, tolerate an older model.
    kappa_tries : int
        Times that a model is made more curved before the step counts as impossible. Each raises
        ``kappa`` by a fifth or more, and the first attempt usually succeeds.
    least_kappa : float
        Smallest ``kappa``: steps at most fifty times as long as the curvature suggests.
    easing : float
        Factor by which ``kappa`` may fall from one step to the next. Slower than it rises, since a
        step that breaks the bound is computed for nothing.
    steps_per_iteration : int
        Most proximal steps between two gaps. A gap costs a pass over all the data.
    fastest, slowest : float
        Range of the factors by which :class:`StepSchedule` expects a step to shrink the gap.
    share_of_tol, share_of_gap : float
        Parts of the tolerance and of the present gap to which a smaller problem (a model, a working
        set, a smoothed loss) is solved. More digits are lost when the smaller problem changes.
    path_momentum : float
        Nesterov's ``t`` at the first step of a new ``alpha``. From 50, the first point is nearly
        the last solution plus its difference from the one before: the path is almost straight.
    first_rows : int
        Rows of the first working set. Its Gram matrix costs little next to one pass over the data.
    near : float
        A row stays in the working set while its gradient is this part of what lets a row in, so
        that rows on the border do not enter and leave again.
    loose, spare : float, int
        The working set is cut once it has ``spare`` rows more than ``loose`` times those needed. A
        cut costs a new Gram matrix, so that a few superfluous rows are cheaper.
    epochs, exact_epochs : int
        Epochs of coordinate descent on a model, and at most on a model that is the loss itself. A
        model is replaced soon and need not be solved; the loss itself is.
    anderson_depth : int
        Epochs between extrapolations, and steps that one combines. The linear system has this many
        unknowns; with more of them it becomes singular in floating point.
    epoch_effort, prox_effort : float
        Effort of an epoch of coordinate descent, and of one proximal map. Rough values, as only
        limits depend on them.
    settled : int
        Iterations before Newton steps are tried: earlier ones would work on the wrong rows.
    armijo : float
        Share of what its slope promises that a Newton step must gain (Armijo's rule). A small one:
        near the solution whole steps are right, and a strict rule would cut them.
    shortest : float
        Newton steps are not cut below this part of their length. If even such a step does not help,
        the zeros are wrong, and a proximal step is what corrects them.
    few_entries : float
        Each output has its own Gram matrix where all of them have at most this many entries (160 MB
        in double precision).
    max_products : int
        Products by the Hessian in one Newton step. The preconditioner makes a few enough.
    forcing : float
        Part of the gradient, in the preconditioner's norm, that conjugate gradients may leave. More
        digits do not pay while the rows and signs may still change.
    largest_reduced_system : int
        Unknowns of a preconditioner that is factored as one matrix, in time of their cube. Beyond,
        one factor for each output takes its place.
    largest_model : int
        Most features of a Gram matrix (of 128 MB in double precision); wider problems take their
        steps on the data.
    largest_grams : float
        Most entries of all Gram matrices together, for the same reason.
    model_steps, exact_model_steps : int
        Most accelerated steps on a model, and on a model that is the loss itself.
    steps_per_gap : int
        Accelerated steps between looks at the gap of a model, which costs as much as a step.
    models_per_iteration : int
        Models minimised in one iteration.
    single_tol : float
        Relative gap that steps in single precision reach easily, as its rounding is near 1e-7.
        Smaller tolerances start in double precision.
    single_entries : int
        Entries of ``X`` from which a copy in single precision pays. Smaller data are in the cache
        anyway, where memory traffic does not matter.
    single_patience, single_progress : int, float
        Iterations in single precision without progress, a fall of the gap by this factor, before
        double precision takes over. Stricter than ``patience``: double precision always goes on.
    unbalanced : float
        Largest derivative in the intercept where a gap is computed. The dual point is
        balanced afterwards, and a smaller derivative would hardly make the gap smaller.
    smooth_iterations : int
        Most iterations on one smoothed problem. Where they do not suffice, moving the centre helps
        more than further iterations.
    rate_growth : float
        Factor of the rate of smoothing where the gap did not fall by half. A larger rate is nearer
        to the loss itself, and harder to minimise.
    intercept_steps : int
        Most Newton steps for the intercept alone, which has few unknowns and a smooth loss.
    """

    # When to stop.
    patience: int = 60
    progress: float = 0.99
    effort: float = 20.0
    few_iterations: int = 1000
    largest_share: float = 2.0
    least_share: float = 0.1
    penalties_per_effort: int = 50
    float32_share_of_tol: float = 0.95
    # Models of the loss.
    least_model_rows: int = 2048
    rows_per_column: int = 3
    largest_dense_spectrum: int = 128
    spectral_margin: float = 0.01
    row_model_age: int = 12
    matrix_model_age: int = 6
    # Proximal steps in the metric of a model.
    kappa_tries: int = 12
    least_kappa: float = 0.02
    easing: float = 0.8
    steps_per_iteration: int = 5
    fastest: float = 0.01
    slowest: float = 0.8
    share_of_tol: float = 0.3
    share_of_gap: float = 0.1
    path_momentum: float = 50.0
    # Working sets and coordinate descent.
    first_rows: int = 64
    near: float = 0.97
    loose: float = 1.2
    spare: int = 16
    epochs: int = 6
    exact_epochs: int = 1000
    anderson_depth: int = 5
    epoch_effort: float = 0.25
    prox_effort: float = 0.4
    # Newton steps.
    settled: int = 2
    armijo: float = 1e-4
    shortest: float = 0.03
    few_entries: float = 2e7
    max_products: int = 12
    forcing: float = 0.2
    largest_reduced_system: int = 1500
    # Norms without a sum of row norms.
    largest_model: int = 4096
    largest_grams: float = 4e7
    model_steps: int = 200
    exact_model_steps: int = 2000
    steps_per_gap: int = 10
    models_per_iteration: int = 3
    # Single precision, losses with kinks, the intercept.
    single_tol: float = 1e-4
    single_entries: int = 2**16
    single_patience: int = 6
    single_progress: float = 0.9
    unbalanced: float = 1e-5
    smooth_iterations: int = 100
    rate_growth: float = 4.0
    intercept_steps: int = 50


#: The settings of every fit that does not name others.
DEFAULT_SETTINGS = ProximalSettings()
