"""Confident-GNMax: the winner where enough teachers agree, by a noisy check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from earshot_models.votes.confident_check import ConfidentCheck
from earshot_models.votes.costs.releases import VotesCost
from earshot_models.votes.rules.gnmax import GaussianRule
from earshot_protocol.overriding import override


@dataclass(frozen=True, kw_only=True)
class ConfidentRule(GaussianRule):
    """Answer with the class that has most votes, where enough teachers agree.

    Where max_j n_j + N(0, σ₁²) ≥ T, argmax_j n_j + N(0, σ²); else no answer (Papernot et al. 2018,
    Algorithm 1).

    Attributes:
        threshold: Votes that pass the check (T), noise included.
        check_sigma: Standard deviation of the noise on the check (σ₁), in votes.
    """

    threshold: float
    check_sigma: float

    name: ClassVar[str] = "confident"
    publishes: ClassVar[frozenset[VotesCost]] = frozenset(VotesCost)

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.check

    @property
    @override
    def check(self) -> ConfidentCheck:
        return ConfidentCheck(self.threshold, self.check_sigma)
