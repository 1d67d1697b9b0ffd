"""A bound of the theory: its value, the theorem behind it, and the numbers that it uses."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from typing import Any

GUARANTEE, RATE = "guarantee", "rate"
#: The authors of most theorems on matrices, regret and mistakes.
MATRIX_PAPER = "Kakade, Shalev-Shwartz and Tewari"


@dataclass(frozen=True)
class Bound:
    """A bound with its theorem and the numbers that it was computed from.

    Attributes
    ----------
    value : float
        The bound.
    name : str
        The quantity that is bounded.
    theorem : str
        The theorem that proves it.
    inputs : dict
        The numbers that it was computed from, by name.
    sentence : str
        What it says, in words.
    form : {"exact", "paper"}
        ``"exact"`` uses the norms of the proof. ``"paper"`` is the closed form of the paper, which
        is looser or leaves out constants.
    kind : {"guarantee", "rate"}
        A ``"guarantee"`` is a bound. A ``"rate"`` leaves constants open, so it can only be compared
        with other rates.
    power : float
        The exponent of the number of samples in the value; zero if the value is no such power.

    Examples
    --------
    >>> bound = Bound(0.5, "excess risk", "Corollary 8", {"n": 100.0}, "At most 0.5.", power=-0.5)
    >>> bound.at(400).value
    0.25
    """

    value: float
    name: str
    theorem: str
    inputs: dict[str, float] = field(default_factory=dict)
    sentence: str = ""
    form: str = "exact"
    kind: str = GUARANTEE
    power: float = 0.0

    def __float__(self) -> float:
        return self.value

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else str(self)

    def at(self, n: float) -> Bound:
        """Return the bound for another number of samples, with all other inputs unchanged.

        Parameters
        ----------
        n : float
            The number of samples.
        """
        before = self.inputs.get("n")
        if before is None or self.power == 0.0:
            raise ValueError(
                f"The bound on {self.name} is not a power of the number of samples, so it cannot "
                "be rescaled; compute it again."
            )
        if not 0.0 < n < math.inf:
            raise ValueError(f"n={n!r} must be positive and finite.")
        factor = n / before
        value = self.value * factor**self.power
        times = "ten times" if factor == 10.0 else f"{factor:.3g} times"
        moves = "falls" if value < self.value else "rises"
        sentence = (
            f"With {times} the samples ({n:g}) the {self.kind} for the {self.name} "
            f"{moves} from {self.value:.3g} to {value:.3g}, all else being the same."
        )
        inputs = self.inputs | {"n": float(n)}
        # Bounds on regret count their samples as rounds; both names must tell the same number.
        if "rounds" in inputs:
            inputs["rounds"] = float(n)
        inputs.pop("step", None)  # the best step depends on the number of rounds
        return replace(self, value=value, inputs=inputs, sentence=sentence)

    def samples_for(self, value: float) -> float:
        """Return the number of samples with which the bound is at most ``value``."""
        before = self.inputs.get("n")
        if before is None or not self.power < 0.0:
            raise ValueError(f"The bound on {self.name} does not fall with the number of samples.")
        if not value > 0.0:
            raise ValueError(f"value={value!r} must be positive.")
        # A bound of zero, as of weights of norm zero, holds for any number of samples.
        if not self.value > 0.0:
            return 1.0
        # In logarithms, because the number of samples for a tiny value overflows.
        logarithm = math.log(before) + (math.log(value) - math.log(self.value)) / self.power
        return float(math.ceil(math.exp(logarithm))) if logarithm < 700.0 else math.inf

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as a dictionary."""
        return asdict(self)
