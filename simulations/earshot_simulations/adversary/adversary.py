"""Who an adversary controls, and what those phones do."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from earshot_protocol.checks import share


@dataclass(frozen=True)
class Adversary:
    """The fraction of all phones that makes each attack.

    One adversary controls them all: the phones of a smaller fraction are among those of a larger
    one, so that equal fractions are the same phones with several attacks. Its goal is that a place
    that nobody heard is published, under the first label.

    Attributes:
        poisoning: hears nothing but that place, and publishes it without noise.
        ballot_stuffing: casts, together, as many votes for one candidate as all phones could,
            without noise; more would not go unnoticed.
        wrong_shares: reveals wrong shares of its neighbours' secrets.
        garbage: answers every task with random bytes.
        dropouts: vanishes, all at once, before the last round of the last secure sum, where every
            phone that stayed has done its work already. They count towards ρ: as many fewer vanish
            elsewhere.

    Raises:
        InvalidParametersError: a fraction is not from 0 to 1.
    """

    poisoning: float = 0.0
    ballot_stuffing: float = 0.0
    wrong_shares: float = 0.0
    garbage: float = 0.0
    dropouts: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            share(field.name, getattr(self, field.name))

    def members(self, phones: int, seed: int) -> dict[str, frozenset[int]]:
        """The numbers of the phones that make each attack, ⌊fraction · phones⌋ of them."""
        order = np.random.default_rng([seed, 0xE]).permutation(phones).tolist()
        return {
            field.name: frozenset(order[: int(getattr(self, field.name) * phones)])
            for field in fields(self)
        }
