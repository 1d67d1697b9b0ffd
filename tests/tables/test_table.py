"""Names of the columns of a table."""

from hypothesis import given
from hypothesis import strategies as st

from mixnorm.tables.table import make_names_unique


@given(st.lists(st.sampled_from(["", "a", "a.2", "column_1", "column_2", "b"]), max_size=8))
def test_names_are_made_unique(names):
    unique, notes = make_names_unique(names)
    assert len(set(unique)) == len(names)
    assert all(unique)
    changed = [repr(new) for new, old in zip(unique, names, strict=True) if new != old]
    assert len(notes) == bool(changed)
    assert all(name in notes[0] for name in changed[:5])
    first = {name: names.index(name) for name in names if name}
    assert all(unique[place] == name for name, place in first.items())
