"""From a budget to the noise that training a generator, or labels for its samples, need.

All noise is fixed before anything is looked at, and counted by the noise alone, so that the budget
may be published. Of DP-SGD the unit is a clip that is there or not; of votes a teacher that is left
out (`Unit.PHONE`) or that votes otherwise (`Unit.REPLACED_PHONE`). Teachers share no clip, so a
teacher's ε holds for each of its clips as well.
"""

from __future__ import annotations

import math
from typing import Protocol

from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy.mechanisms import Unit
from earshot_simulations.pate.mechanisms import UNITS, Name

MECHANISMS = (Name.LNMAX, Name.GNMAX)
"""Those whose noise is worked out from a budget here."""


class Batches(Protocol):
    """What of training by DP-SGD decides its cost beside the noise."""

    @property
    def steps(self) -> int:
        """How many batches there are."""

    @property
    def batch(self) -> int:
        """Clips in a batch, on average."""


class UselessBudgetError(InvalidParametersError):
    """A budget for which noise would drown all that there is to learn; says what would do."""


def dp_sgd(epsilon: float, delta: float, clips: int, settings: Batches) -> float:
    """Noise on a sum of clipped gradients, over their norm (Abadi et al., CCS 2016).

    Every clip is in every batch with probability batch/clips, on its own (Poisson sampling).

    Args:
        epsilon: ε of all steps together, for a clip that is there or not.
        delta: δ, below one over the clips.
        clips: how many there are.
        settings: of training.

    Returns:
        The deviation, in multiples of the norm that gradients are clipped to.

    Raises:
        InvalidParametersError: a number is out of range, a δ that allows to publish a clip, or more
            clips in a batch than there are.
    """
    from earshot_server.accounting.dp_sgd import training_noise

    check(epsilon, delta, clips)
    if settings.batch > clips:
        raise InvalidParametersError(
            f"batch={settings.batch}: there are {clips} clips; take a batch of at most so many"
        )
    return training_noise(epsilon, settings.batch / clips, settings.steps, delta)


def labels(
    epsilon: float,
    delta: float,
    queries: int,
    mechanism: Name,
    unit: Unit = Unit.REPLACED_PHONE,
) -> float:
    """Noise on counts of teachers' votes with which all answers together keep a budget.

    Args:
        epsilon: ε of all answers.
        delta: δ.
        queries: that are answered; the teachers' parts, iterations and classes are no matter.
        mechanism: `LNMAX` or `GNMAX`.
        unit: what neighbours differ in.

    Returns:
        In votes: the scale of `LNMAX`'s Laplace noise, or the deviation σ of `GNMAX`'s Gaussian.

    Raises:
        InvalidParametersError: a number is out of range, or another mechanism or unit.
    """
    from earshot_server.accounting.votes import calibration

    if mechanism not in MECHANISMS:
        raise InvalidParametersError(
            f"mechanism={mechanism}: must be {' or '.join(MECHANISMS)}, which answer every query"
        )
    if unit not in UNITS:
        raise InvalidParametersError(
            f"unit={unit}: must be one of {', '.join(map(repr, map(str, UNITS)))}"
        )
    counts = 2 if unit is Unit.REPLACED_PHONE else 1  # that change by one vote each
    if mechanism == Name.LNMAX:
        return calibration.laplace_scale(epsilon, delta, queries, counts)
    return calibration.gaussian_deviation(epsilon, delta, queries, math.sqrt(counts))


def pate_gan(
    epsilon: float,
    delta: float,
    queries: int,
    mechanism: Name = Name.LNMAX,
    unit: Unit = Unit.REPLACED_PHONE,
) -> float:
    """The same where teachers say "real" or "generated" of samples (Jordon et al., ICLR 2019).

    Two classes are no cheaper than many: a vote that changes moves both counts. Arguments and
    errors are those of `labels`; every sample of every iteration is a query.
    """
    return labels(epsilon, delta, queries, mechanism, unit)


def check(epsilon: float, delta: float, clips: int) -> None:
    """A budget that protects each of so many clips.

    Raises:
        InvalidParametersError: no ε, no δ, or a δ of 1/clips or more, which allows to publish one.
    """
    checks.epsilon("epsilon", epsilon)
    checks.probability("delta", delta)
    checks.whole("clips", clips)
    if delta * clips >= 1:
        raise InvalidParametersError(
            f"delta={delta}: must be below 1/{clips}, one over the number of clips, or one of them "
            "may as well be published"
        )


def check_useful(noise: float, most: int, what: str, remedy: str) -> None:
    """Refuse noise that is larger than all that it is added to.

    Of a batch of B clipped gradients no sum is longer than B norms, and of M teachers no count is
    larger than M: where the noise on a single number is more, nothing can be learned from it.

    Args:
        noise: deviation or scale, in norms or votes.
        most: B or M.
        what: is drowned, such as "200 teachers".
        remedy: what would do.

    Raises:
        UselessBudgetError: the noise is larger.
    """
    if noise > most:
        raise UselessBudgetError(
            f"this budget buys nothing: it needs noise of {noise:.4g} where {what} can make "
            f"{most} at most; {remedy}"
        )
