"""Mutants that no caller could notice, each with the reason.

They are not counted. A key is a file, a function, and the change.
"""

_PROXIMAL: dict[str, str] = {
    "engines/proximal/descent.py::_extrapolate::0.0 -> (1.0)": (
        "the solution of a positive definite system for ones has a positive sum, never zero"
    ),
    "engines/proximal/mixture.py::LossMixture._each::True -> (False)": (
        "losses and encoded targets are made together, one for one"
    ),
    "engines/proximal/multiplier_solver.py::Smoothed.curvature_at::0 -> (1)": (
        "another seed of the probe: any direction without zeros shows which rows bend"
    ),
    "engines/proximal/row_solver.py::RowSolver._choose_rows::"
    "scores > alpha * (1.0 - _ROUNDING_OF_DUALS) -> "
    "(scores >= alpha * (1.0 - _ROUNDING_OF_DUALS))": (
        "a row at the edge of a margin for rounding may be worked on or not"
    ),
    "engines/proximal/stepper.py::StepSchedule.__init__::0 -> (1)": (
        "the gap before the first steps is zero, and their number is not used then"
    ),
}

_KERNEL_ENGINES: dict[str, str] = {
    "engines/multikernel/machine_jit.py::compute_hinges::"
    "F[k, i] + 1.0 > top -> (F[k, i] + 1.0 >= top)": ("the larger of two equal numbers is either"),
    "engines/multikernel/engine.py::_Alternation.prune::"
    "not np.any(small & (best.weights > 0.0)) or np.array_equal(small, tried) -> "
    "(not np.any(small & (best.weights > 0.0)) and np.array_equal(small, tried))": (
        "an attempt that leaves nothing out, or was made before, changes nothing"
    ),
    "engines/multikernel/ascent.py::Ascent.run::"
    "idle > settings.idle_rounds -> (idle >= settings.idle_rounds)": (
        "sixty rounds without progress or sixty-one: only rounding is left after either"
    ),
    "engines/multikernel/engine.py::_check_energies::"
    "energies[worst] < -1e-3 * largest -> (energies[worst] <= -0.001 * largest)": (
        "equality is met by energies of zero only, which the second condition accepts"
    ),
    "engines/multikernel/newton.py::ProximalNewton.step::"
    "1.5 * self._patience -> (1.5 / self._patience)": (
        "the factor of an estimate of time, which chooses between two methods"
    ),
    "engines/sparse_kernels/lasso.py::LassoRefit._try_step::True -> (False)": (
        "after a step a second one may be tried, which is taken only if it is lower yet"
    ),
}

_GREEDY_MIRROR_BOOSTING: dict[str, str] = {
    "engines/greedy/backward.py::prune::"
    "trial.objective < run.path.rounds[size - 1].objective -> (trial.objective <= "
    "run.path.rounds[size - 1].objective)": (
        "of two models of one size with the same objective either may be kept"
    ),
    "engines/greedy/rules.py::exact_gains::support.curvature(fresh=True) -> pass": (
        "it saves each trial its own model of the curvature; trials end at the same optimum"
    ),
    "engines/greedy/rules.py::_compute_column_gain::problem.kink > 0.0 -> (problem.kink >= 0.0)": (
        "without kinks the slopes of a shift-invariant loss have a mean of zero already"
    ),
    "engines/mirror/block_learner.py::BlockLearner._move_origin::False -> (True)": (
        "the first entry is that of the intercept, whose mean is zero and never moves"
    ),
}

_CORE: dict[str, str] = {
    "engines/_core/lbfgs.py::History.record::not is_numpy(change) -> (is_numpy(change))": (
        "the way for devices computes the same; it only waits less often there"
    ),
}

_DUAL: dict[str, str] = {
    "engines/dual/squares.py::_solve_start::q - 1.0 -> (q + 1.0)": (
        "another start above the root, from which the steps reach it as well"
    ),
    "engines/dual/gradient.py::ForwardBackward._try_step::"
    "above <= self.problem.settings.delta / self.length * distance -> "
    "(above < self.problem.settings.delta / self.length * distance)": (
        "a bound that is met to the last bit; then the step may also be halved"
    ),
    "engines/dual/problem.py::DualProblem.start::1 -> (2)": (
        "a second column of zero scores, whose residual is not read"
    ),
    "engines/dual/gradient.py::_choose_first_length::1.0 -> (2.0)": (
        "the first length that a line search tries; it is shortened or lengthened from there"
    ),
    "engines/dual/interior.py::place_inside::1.0 -> (2.0)": (
        "how far inside its bounds the start is; any place inside will do"
    ),
}

_KERNELS: dict[str, str] = {}

_LOSSES_AND_NORMS: dict[str, str] = {
    "norms/svd.py::find_ball_triplets::least > 1e-6 * radius -> (least >= 1e-06 * radius)": (
        "where both are equal, either way of computing is right"
    ),
}

_POOLS: dict[str, str] = {
    (
        "pools/patches/patches_jit.py::respond_few::starts[atom] + size * size -> "
        "(starts[atom] - size * size)"
    ): "only the start of the slice counts: the loops know the size of a template",
    "pools/patches/pool.py::_check_pixels::largest > limit**0.5 -> (largest >= limit ** 0.5)": (
        "they differ for images whose largest pixel is this very float; the guard is no sharp limit"
    ),
}

_SELECTION_AND_STORAGE: dict[str, str] = {}

REASONS: dict[str, str] = {
    **_PROXIMAL,
    **_KERNEL_ENGINES,
    **_GREEDY_MIRROR_BOOSTING,
    **_CORE,
    **_DUAL,
    **_KERNELS,
    **_LOSSES_AND_NORMS,
    **_POOLS,
    **_SELECTION_AND_STORAGE,
}
