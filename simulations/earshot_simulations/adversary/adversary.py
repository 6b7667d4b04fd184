"""The phones that an adversary controls, and the attacks they make."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from earshot_protocol.checks import share
from earshot_simulations.fields import settle


@dataclass(frozen=True)
class Adversary:
    """Fractions of all phones that make each attack.

    One adversary controls them all: the phones of a smaller fraction are among those of a larger
    one, so equal fractions are the same phones with several attacks. Its goal is that a place no
    phone has heard is published under the first label, or that sound is named wrongly.

    Attributes:
        poisoning: Fraction of phones that claim to hear only that place and publish it without
            noise.
        ballot_stuffing: Fraction of phones that together cast as many votes for one candidate as
            all phones could, without noise; more would be detected.
        swapped_labels: Fraction of phones that label only recordings of the first two scenes, each
            with the other's label.
        one_label: Fraction of phones that label everything they hear with the last label.
        pushed_label: Fraction of phones that claim to hear only the opposite of the first label's
            sound, under that label; in a discovery by secure sums.
        negative_counts: Fraction of phones that put their whole vector into the entries that count
            labelled recordings, all negative; in a discovery by secure sums.
        false_vectors: Fraction of phones that together add vectors as long as those of half of all
            phones to every row of a sum; in a discovery by secure sums of two operators.
        wrong_shares: Fraction of phones that reveal wrong shares of their neighbours' secrets.
        garbage: Fraction of phones that answer every task with random bytes.
        dropouts: Fraction of phones that vanish together before the last round of the last secure
            sum, when every remaining phone has already done its work. They count towards ρ:
            correspondingly fewer phones vanish elsewhere.

    Raises:
        InvalidParametersError: A fraction is not from 0 to 1.
    """

    poisoning: float = 0.0
    ballot_stuffing: float = 0.0
    swapped_labels: float = 0.0
    one_label: float = 0.0
    pushed_label: float = 0.0
    negative_counts: float = 0.0
    false_vectors: float = 0.0
    wrong_shares: float = 0.0
    garbage: float = 0.0
    dropouts: float = 0.0

    def __post_init__(self) -> None:
        settle(self)
        for field in fields(self):
            share(field.name, getattr(self, field.name))

    def members(self, phones: int, seed: int) -> dict[str, frozenset[int]]:
        """Return the numbers of the phones that make each attack, ⌊fraction · phones⌋ of them."""
        order = np.random.default_rng([seed, 0xE]).permutation(phones).tolist()
        return {
            field.name: frozenset(order[: int(getattr(self, field.name) * phones)])
            for field in fields(self)
        }
