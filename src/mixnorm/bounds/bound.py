"""What the theory promises, as a value with where it comes from."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

GUARANTEE, RATE = "guarantee", "rate"


@dataclass(frozen=True)
class Bound:
    """A number that the theory gives, with all that it was computed from.

    Attributes
    ----------
    value : float
        The bound.
    name : str
        What is bounded.
    theorem : str
        Where it is proved.
    inputs : dict
        The numbers that it was computed from, by name.
    sentence : str
        What it says, in words.
    form : {"exact", "paper"}
        With the norms that the proof is about, or in the closed form of the paper, which loses or
        drops constants.
    kind : {"guarantee", "rate"}
        Whether the value is a bound, or the theory leaves constants open and it orders alone.
    power : float
        The value changes with the number of samples as its power; zero where it does not.

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
        """Return the bound for another number of samples, all else being the same.

        Parameters
        ----------
        n : float
            How many samples there would be.
        """
        before = self.inputs.get("n")
        if before is None or self.power == 0.0:
            raise ValueError(
                f"The bound on {self.name} is no power of the number of samples; compute it anew."
            )
        if not 0.0 < n < math.inf:
            raise ValueError(f"n={n!r} must be positive and finite.")
        value = self.value * (n / before) ** self.power
        moves = "falls" if value < self.value else "rises"
        sentence = (
            f"With {_times(n / before)} the samples ({n:g}) the {self.kind} for the {self.name} "
            f"{moves} from {self.value:.3g} to {value:.3g}, all else being the same."
        )
        inputs = self.inputs | {"n": float(n)}
        if "rounds" in inputs:
            inputs["rounds"] = float(n)
        inputs.pop("step", None)  # that of another number of rounds
        return replace(self, value=value, inputs=inputs, sentence=sentence)

    def needed(self, value: float) -> float:
        """Return how many samples it takes for the bound to be no more than a value."""
        before = self.inputs.get("n")
        if before is None or not self.power < 0.0:
            raise ValueError(f"The bound on {self.name} does not fall with the number of samples.")
        if not value > 0.0:
            raise ValueError(f"value={value!r} must be positive.")
        if not self.value > 0.0:
            return 1.0
        logarithm = math.log(before) + (math.log(value) - math.log(self.value)) / self.power
        return float(math.ceil(math.exp(logarithm))) if logarithm < 700.0 else math.inf

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        return {
            "name": self.name,
            "value": self.value,
            "theorem": self.theorem,
            "form": self.form,
            "kind": self.kind,
            "power": self.power,
            "inputs": dict(self.inputs),
            "sentence": self.sentence,
        }


def _times(factor: float) -> str:
    return "ten times" if factor == 10.0 else f"{factor:.3g} times"


def check_form(form: Any) -> None:
    """Raise for a form that is not known."""
    if not isinstance(form, str) or form not in ("exact", "paper"):
        raise ValueError(
            f"form={form!r} is not known; 'exact' is a bound, and 'paper' the closed form of the "
            "paper, without constants."
        )
