from mixnorm.engines._core.result import Result
from mixnorm.engines.dual import DualSolution
from mixnorm.engines.multikernel import KernelSolution
from mixnorm.engines.proximal import Solution


def test_engines_with_a_gap_say_how_far_they_came_in_the_same_words():
    for kind in (Solution, KernelSolution, DualSolution):
        assert issubclass(kind, Result)
        assert {"objective", "gap", "iterations", "converged", "interrupted", "history"} <= set(
            kind.__dataclass_fields__
        )
