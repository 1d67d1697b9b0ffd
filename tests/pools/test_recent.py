"""Columns that were asked for lately."""

from mixnorm.pools.base import Recent


def test_only_what_is_missing_is_made():
    made = []

    def make(atoms):
        made.append(list(atoms))
        return [10 * atom for atom in atoms]

    recent = Recent(3)
    assert recent.gather([1, 2], make) == [10, 20]
    assert recent.gather([2, 3], make) == [20, 30]
    assert recent.gather([1, 4], make) == [10, 40]  # 2, asked for longest ago, gives way
    assert recent.gather([3, 1, 4], make) == [30, 10, 40]
    assert recent.gather([2], make) == [20]
    assert made == [[1, 2], [3], [4], [2]]


def test_all_asked_for_together_are_there():
    recent = Recent(1)
    assert recent.gather([5, 6, 7], list) == [5, 6, 7]
