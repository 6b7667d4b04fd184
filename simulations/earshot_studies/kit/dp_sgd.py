"""Cost of private training by noisy gradients: DP-SGD (Abadi et al., CCS 2016)."""

from __future__ import annotations

from dp_accounting import (
    GaussianDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
    calibrate_dp_mechanism,
)
from dp_accounting.dp_event import DpEvent
from dp_accounting.pld import PLDAccountant

from earshot_protocol import checks

_STEP = 1e-3
"""Step of privacy losses; they are rounded up to whole steps, so that ε is never too small."""


def training_epsilon(noise: float, rate: float, steps: int, delta: float) -> float:
    """Return the ε of training, where neighbours differ by adding or removing one example.

    Args:
        noise: Deviation of the noise on a sum of gradients, over the norm they are clipped to.
        rate: Probability that an example is in a batch, independently (Poisson sampling).
        steps: Number of batches.
        delta: Value of δ at which ε is stated.

    Raises:
        InvalidParametersError: A number is out of range.
    """
    accountant = PLDAccountant(value_discretization_interval=_STEP)
    accountant.compose(_training(checks.positive("noise", noise), rate, steps))
    return float(accountant.get_epsilon(checks.probability("delta", delta)))


def training_noise(epsilon: float, rate: float, steps: int, delta: float) -> float:
    """Return the least noise for which `training_epsilon` is at most ε, within 0.002.

    Raises:
        InvalidParametersError: A number is out of range.
    """
    target = checks.positive("epsilon", epsilon)
    checks.probability("delta", delta)
    found = calibrate_dp_mechanism(
        lambda: PLDAccountant(value_discretization_interval=_STEP),
        lambda noise: _training(noise, rate, steps),
        target,
        delta,
        tol=1e-3,
    )
    # The search may end within its tolerance on either side of the least noise.
    return float(found + 1e-3)


def _training(noise: float, rate: float, steps: int) -> DpEvent:
    checks.positive("rate", rate, 1)
    batch = PoissonSampledDpEvent(rate, GaussianDpEvent(noise))
    return SelfComposedDpEvent(batch, checks.whole("steps", steps))
