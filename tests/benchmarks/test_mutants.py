"""The list of mutants that change nothing, against the code; what a trial says about a mutant."""

import signal

import pytest

from benchmarks.harness.jobs import ROOT
from benchmarks.mutants.equivalent import REASONS
from benchmarks.mutants.mutations import find_mutations
from benchmarks.mutants.trial import judge_exit


@pytest.mark.parametrize("path", sorted({key.split("::")[0] for key in REASONS}))
def test_mutants_left_out_are_mutants_of_the_code(path):
    """A change of the code may make a reason obsolete; then it goes."""
    keys = {each.key for each in find_mutations(path, (ROOT / "src/mixnorm" / path).read_bytes())}
    assert {key for key in REASONS if key.split("::")[0] == path} <= keys


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (0, "survived"),
        (1, "killed"),
        (2, "killed"),
        (4, "killed"),
        (-signal.SIGSEGV, "killed"),
        (None, "endless"),
    ],
)
def test_exit_codes_of_a_trial(code, status):
    assert judge_exit(code) == status


def test_a_trial_that_was_stopped_says_nothing_about_the_mutant():
    with pytest.raises(KeyboardInterrupt):
        judge_exit(-signal.SIGTERM)
    with pytest.raises(SystemExit, match="no tests ran"):
        judge_exit(5, "no tests ran")
