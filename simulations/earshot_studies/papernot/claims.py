"""Claimed data-dependent costs (Papernot et al. 2018), beside the true divergences at one order."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from earshot_models.votes.costs.dependent import dependent_divergence, log_other_winner
from earshot_models.votes.costs.outcomes import ERROR, outcome_divergence
from earshot_models.votes.costs.releases import printed_release_divergence, release_divergence
from earshot_protocol.privacy.mechanisms import Unit
from earshot_simulations.auditing.findings import EXACT, Finding, Technique
from earshot_simulations.auditing.losses import Bracket


def claims() -> Iterator[Finding]:
    """Compare every claim with the true cost."""
    yield one_way()
    yield smooth_release()


def one_way(gap: int = 50, sigma: float = 7.0, order: float = 10.0) -> Finding:
    """Audit Theorem 6, which bounds the divergence from a neighbour in one direction only."""
    from scipy.stats import norm

    votes = np.array([[100.0 + gap, 100.0]])
    log_q = log_other_winner(votes, sigma)
    claimed = float(dependent_divergence(log_q, sigma, [order])[0, 0])
    # The winner of two classes depends on the difference of both counts, with noise of √2σ.
    here, there = (norm.sf(each / (math.sqrt(2) * sigma)) for each in (gap, gap - 2))
    total = there**order * here ** (1 - order) + (1 - there) ** order * (1 - here) ** (1 - order)
    measured = math.log(total) / (order - 1)
    return Finding(
        f"Papernot et al. 2018, Theorem 6: σ = {sigma:g}, {100 + gap} to 100 votes, from a "
        f"neighbour to these; divergence at λ = {order:g}",
        Unit.REPLACED_PHONE,
        0.0,
        claimed,
        float(outcome_divergence(votes, sigma, [order])[0, 0]),
        Bracket(measured - ERROR, measured + ERROR),
        Technique(EXACT, "exact: two outcomes"),
    )


def smooth_release(order: float = 14.0, beta: float = 0.0329, sigma: float = 11.64) -> Finding:
    """Audit Theorem 23: the cost of publishing a cost by smooth sensitivity."""
    claimed = printed_release_divergence(order, beta, sigma)
    wide = math.exp(beta) * sigma
    # ∫ p^λ p'^(1−λ) dx of N(0, wide²) and N(1, σ²) is Gaussian, so a fine sum is accurate.
    curvature = order / wide**2 + (1 - order) / sigma**2
    centre = (1 - order) / sigma**2 / curvature
    step = 0.05 / math.sqrt(curvature)
    at = centre + step * np.arange(-300, 301)
    logs = -order * at**2 / (2 * wide**2) - (1 - order) * (at - 1) ** 2 / (2 * sigma**2)
    logs -= order * math.log(wide) + (1 - order) * math.log(sigma) + math.log(2 * math.pi) / 2
    measured = math.log(step * float(np.exp(logs).sum())) / (order - 1)
    return Finding(
        f"Papernot et al. 2018, Theorem 23: publishing a cost, β = {beta}, σ_s = {sigma}; "
        f"divergence at λ = {order:g}",
        Unit.REPLACED_PHONE,
        0.0,
        claimed,
        release_divergence(order, beta, sigma),
        Bracket(measured - ERROR, measured),
        Technique(EXACT, "exact: two normal laws, one sensitivity apart and e^β as wide"),
    )
