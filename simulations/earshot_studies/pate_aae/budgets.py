"""Conversion of a budget into the noise for training a generator, or for labelling its samples.

All noise is fixed before any data is read, and its cost does not depend on data, so the budget may
be published. The unit of DP-SGD is a clip that is present or absent; the unit of votes is a teacher
that is left out (`Unit.PHONE`) or votes differently (`Unit.REPLACED_PHONE`). Teachers share no
clip, so a teacher's ε holds for each of its clips as well.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

from earshot_models.votes.rules.gnmax import GNMaxRule
from earshot_models.votes.rules.lnmax import LNMaxRule
from earshot_models.votes.rules.rule import UNITS
from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy.mechanisms import Unit


class NoisyMax(enum.StrEnum):
    """Rule of votes that answers every query, with noise that follows from a budget."""

    LNMAX = "lnmax"
    """Noisy maximum with Laplace noise."""
    GNMAX = "gnmax"
    """Noisy maximum with Gaussian noise."""


MECHANISMS: Mapping[NoisyMax, type[LNMaxRule] | type[GNMaxRule]] = {
    NoisyMax.LNMAX: LNMaxRule,
    NoisyMax.GNMAX: GNMaxRule,
}
"""Rules whose noise is derived from a budget here."""


def dp_sgd(epsilon: float, delta: float, clips: int, steps: int, batch: int) -> float:
    """Return the noise on a sum of clipped gradients, over their norm (Abadi et al., CCS 2016).

    Every clip is in every batch with probability batch/clips, independently (Poisson sampling).

    Args:
        epsilon: Budget ε of all steps together, for a clip that is present or absent.
        delta: Value of δ, below one over the clips.
        clips: Number of clips.
        steps: Number of batches.
        batch: Clips in a batch, on average.

    Returns:
        Standard deviation, in multiples of the norm that gradients are clipped to.

    Raises:
        InvalidParametersError: A number is out of range, δ is so large that a clip may be
            published, or a batch has more clips than there are.
    """
    from earshot_studies.kit.dp_sgd import training_noise

    check(epsilon, delta, clips)
    if batch > clips:
        raise InvalidParametersError(f"batch={batch}: must be at most {clips}, the number of clips")
    return training_noise(epsilon, batch / clips, steps, delta)


def labels(
    epsilon: float,
    delta: float,
    queries: int,
    mechanism: NoisyMax,
    unit: Unit = Unit.REPLACED_PHONE,
) -> float:
    """Return the noise on counts of teachers' votes with which all answers together keep a budget.

    Args:
        epsilon: Budget ε of all answers.
        delta: Value of δ for all answers.
        queries: Queries that are answered; the number of teachers' parts, iterations and classes
            does not matter.
        mechanism: Rule of the votes.
        unit: Unit by which neighbours differ.

    Returns:
        Noise in votes: the scale of `LNMAX`'s Laplace noise, or the deviation σ of `GNMAX`'s
        Gaussian.

    Raises:
        InvalidParametersError: A number is out of range, or the mechanism or unit is unsupported.
    """
    if mechanism not in MECHANISMS:
        raise InvalidParametersError(
            f"mechanism={mechanism}: must be {' or '.join(MECHANISMS)}, which answer every query"
        )
    if unit not in UNITS:
        raise InvalidParametersError(
            f"unit={unit}: must be one of {', '.join(map(repr, map(str, UNITS)))}"
        )
    return MECHANISMS[mechanism].least_noise(epsilon, delta, queries, unit)


def pate_gan(
    epsilon: float,
    delta: float,
    queries: int,
    mechanism: NoisyMax = NoisyMax.LNMAX,
    unit: Unit = Unit.REPLACED_PHONE,
) -> float:
    """Return the noise on votes for "real" or "generated" (Jordon et al., ICLR 2019).

    Two classes are no cheaper than many: a changed vote moves both counts. Arguments and errors are
    those of `labels`; every sample of every iteration is a query.
    """
    return labels(epsilon, delta, queries, mechanism, unit)


def check(epsilon: float, delta: float, clips: int) -> None:
    """Check a budget that protects each clip.

    Raises:
        InvalidParametersError: The budget's ε or δ is out of range, or δ is 1/clips or more, with
            which a clip may be published.
    """
    checks.epsilon("epsilon", epsilon)
    checks.probability("delta", delta)
    checks.whole("clips", clips)
    if delta * clips >= 1:
        raise InvalidParametersError(
            f"delta={delta}: must be below 1/{clips}, one over the number of clips, or a clip may "
            "be published"
        )
