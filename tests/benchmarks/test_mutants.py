"""The list of mutants that change nothing, against the code."""

import pytest

from benchmarks.harness.jobs import ROOT
from benchmarks.mutants.equivalent import REASONS
from benchmarks.mutants.mutations import find_mutations


@pytest.mark.parametrize("path", sorted({key.split("::")[0] for key in REASONS}))
def test_mutants_left_out_are_mutants_of_the_code(path):
    """A change of the code may make a reason obsolete; then it goes."""
    keys = {each.key for each in find_mutations(path, (ROOT / "src/mixnorm" / path).read_bytes())}
    assert {key for key in REASONS if key.split("::")[0] == path} <= keys
