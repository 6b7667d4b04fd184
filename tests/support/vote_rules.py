"""Rules of votes in one line, for tests that are about many of them."""

from __future__ import annotations

from typing import Any

from earshot_models.votes.rules.rule import Rule
from earshot_models.votes.rules.table import RULES

ONE_WINNER = tuple(name for name, kind in RULES.items() if not kind.several)
THRESHOLDS = tuple(name for name, kind in RULES.items() if kind.probabilities)


def rule(name: str, sigma: float, check: tuple[float, float] | None = None, **options: Any) -> Rule:
    """Return a rule.

    Args:
        name: Name on the command line.
        sigma: Noise on a count.
        check: Threshold and noise of the check; None for none.
        options: Other options.
    """
    if check is not None:
        options |= {"threshold": check[0], "check_sigma": check[1]}
    return RULES[name](sigma=sigma, **options)
