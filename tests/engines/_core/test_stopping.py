import pytest

from mixnorm.engines._core.stopping import BestPoint


def test_the_smallest_gap_is_kept_and_of_equal_ones_the_last():
    best = BestPoint("start", patience=3)
    for point, gap in (("a", 2.0), ("b", 1.0), ("c", 1.5), ("d", 1.0)):
        best.note(point, gap, progress=True)
    assert (best.point, best.gap, best.history) == ("d", 1.0, [2.0, 1.0, 1.5, 1.0])


def test_a_gap_that_is_no_number_never_counts():
    best = BestPoint("start", patience=3)
    best.note("a", float("nan"), progress=False)
    assert best.point == "start"


def test_idle_steps_in_a_row_end_the_search():
    best = BestPoint(0, patience=2)
    for progress in (False, True, False):
        best.note(1, 1.0, progress=progress)
        assert not best.given_up
    best.note(1, 1.0, progress=False)
    assert best.given_up


def test_only_an_interrupt_is_kept_back():
    best = BestPoint(0, patience=1)
    with pytest.raises(ValueError, match="wrong"), best.until_interrupted():
        raise ValueError("wrong")
    assert not best.interrupted
    with best.until_interrupted():
        raise KeyboardInterrupt
    assert best.interrupted
