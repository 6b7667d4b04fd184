"""The noise and threshold of a labelling phase, derived from its cost, and the defaults."""

from __future__ import annotations

import math
from typing import NamedTuple

from earshot_protocol import checks
from earshot_protocol.phases.labelling import LARGEST_SAMPLES
from earshot_protocol.privacy.calibration import largest_scale
from earshot_protocol.privacy.events import Event
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.voting.teacher_ballots import Agreement, Ballot, OneHot
from earshot_protocol.voting.vote_sums import VoteSum

EPSILON = 2.0
"""Cost of a whole phase, per phone of weight 1."""
CHECK_SHARE = 0.5
"""Share of the phase's cost, as ρ of zero-concentrated privacy, for the check: the noise of both
sums together limits how clear an answer is, and it is least with equal shares."""


class Noises(NamedTuple):
    """Standard deviations of the noise, in votes."""

    votes: float
    check: float


def noises(
    epsilon: float,
    delta: float,
    *,
    samples: int,
    check_share: float = CHECK_SHARE,
    unit: Unit = Unit.PHONE,
    summation: SummationName = SummationName.BELL,
) -> Noises:
    """Return the least noise with which a phase is (ε, δ)-private for a phone of weight 1.

    Args:
        epsilon: Value of ε for the whole phase.
        delta: Value of δ for the whole phase.
        samples: Number of samples, B.
        check_share: Share of the cost, as ρ, for the check; above 0 and below 1.
        unit: Unit in which neighbours differ.
        summation: Summation, which determines who adds the noise.

    Raises:
        InvalidParametersError: A value is out of range, or secure sums use up δ.
    """
    checks.whole("samples", samples, 1, LARGEST_SAMPLES)
    share = checks.probability("check_share", check_share)

    def deviations(scale: float) -> Noises:
        # A sum of B queries whose ballots move by Δ costs ρ = BΔ²/2σ².
        root = math.sqrt(samples / 2) / scale
        return Noises(root / math.sqrt(1 - share), root / math.sqrt(share))

    def events(scale: float) -> list[Event]:
        ballots: tuple[Ballot, Ballot] = (OneHot(2), Agreement())
        return [
            VoteSum(ballot, samples, noise, delta, summation.survivors).event(unit)
            for ballot, noise in zip(ballots, deviations(scale), strict=True)
        ]

    return deviations(largest_scale(events, epsilon, delta))
