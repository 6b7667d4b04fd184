"""Rules of votes in one line, for tests that are about many of them."""

from __future__ import annotations

from typing import Any

from earshot_models.votes.electorate import Electorate
from earshot_models.votes.rules.rule import VotingRule
from earshot_models.votes.rules.table import RULES
from earshot_models.votes.tally.tallies import Counter, SumSettings, tally
from earshot_protocol.keyed_randomness import keyed
from earshot_protocol.randomness import RandomBytes

ONE_WINNER = tuple(name for name, kind in RULES.items() if not kind.several)
THRESHOLDS = tuple(name for name, kind in RULES.items() if kind.probabilities)


def rule(
    name: str, sigma: float, check: tuple[float, float] | None = None, **options: Any
) -> VotingRule:
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


def noise(*names: object) -> RandomBytes:
    """Return the same noise in every run."""
    return keyed(bytes(32), *names)


def tallied(
    counter: Counter,
    own: VotingRule,
    voters: Electorate,
    weights: Any = None,
    scores: Any = None,
    **sums: Any,
) -> Any:
    """Return a tally whose noise is the same in every run."""
    return tally(
        counter, own, voters, weights, scores, sums=SumSettings(**sums), delta=1e-5, random=noise
    )
