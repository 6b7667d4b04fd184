"""The last step of a sum: the masks that the total still carries, rebuilt from revealed shares.

Every secret is rebuilt before any is used, so that a sum whose secrets cannot all be found opens
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from earshot_protocol.secure_sum import masks
from earshot_protocol.secure_sum.decoding import UnrecoverableSecretError, recover_checked
from earshot_protocol.secure_sum.messages import REVEALED_SHARE_BYTES
from earshot_protocol.secure_sum.parameters import SumParameters

_Shares = dict[int, dict[int, int]]
"""Owner → share index → share."""


@dataclass(frozen=True)
class Unmasking:
    """What is known of a sum when its last round closes.

    Attributes:
        salt: of the sum's keys.
        parameters: of the sum.
        lists: phone of A1 that is not in A2 → the seeds of its pairwise masks, sealed.
        commitments: phone of A1 → the commitment to its seed.
        neighbours: phone → its neighbours that advertised keys, ascending.
        senders: phone of A1 → those of its neighbours that are in A1.
        survivors: A2, the phones whose input is in the total.
        revealed: phone → the shares that it revealed: of its surviving, then of its dropped
            neighbours.
        liars: phones of which a wrong share was found; what else they revealed is left aside where
            there is enough without it, so that each costs one decoding and not one for every
            neighbour.
    """

    salt: bytes
    parameters: SumParameters
    lists: Mapping[int, bytes]
    commitments: Mapping[int, bytes]
    neighbours: Mapping[int, tuple[int, ...]]
    senders: Mapping[int, tuple[int, ...]]
    survivors: set[int]
    revealed: Mapping[int, bytes]
    liars: set[int] = field(default_factory=set)

    def masks(self) -> masks.Words:
        """The sum of all masks that are left in the total, `length` words.

        Raises:
            UnrecoverableSecretError: the shares do not determine a mask that must be removed.
        """
        parameters = self.parameters
        word = masks.word_type(parameters.modulus_bits)
        shares = self._collected()
        added = [self._seed(phone, shares[phone]) for phone in sorted(self.survivors)]
        removed: list[bytes] = []
        for phone in sorted(self.commitments.keys() - self.survivors):
            others = self.survived(phone)[0]
            if not others:
                continue
            seeds = self._masks(phone, shares[phone])
            for other in others:
                (added if phone > other else removed).append(seeds[other])
        total = masks.expand_sum(added, parameters.length, word)
        total -= masks.expand_sum(removed, parameters.length, word)
        return total

    def survived(self, phone: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Of the phone's neighbours in A1: those in A2, and the others."""
        return split(self.senders[phone], self.survivors)

    def _collected(self) -> _Shares:
        """The shares of each owner.

        A share whose index is not its holder's place among the owner's neighbours is left out.
        """
        size = REVEALED_SHARE_BYTES
        places = {
            owner: {holder: place for place, holder in enumerate(self.neighbours[owner], 1)}
            for owner in self.commitments
        }
        collected: _Shares = {owner: {} for owner in self.commitments}
        for holder, revealed in self.revealed.items():
            survivors, dropped = self.survived(holder)
            for at, owner in zip(range(0, len(revealed), size), survivors + dropped, strict=True):
                index = revealed[at]
                if index == places[owner][holder]:
                    collected[owner][index] = int.from_bytes(revealed[at + 1 : at + size])
        return collected

    def _seed(self, phone: int, shares: dict[int, int]) -> bytes:
        def matches(seed: bytes) -> bool:
            return masks.commitment(seed, self.salt, phone) == self.commitments[phone]

        return self._rebuilt("seed", phone, shares, matches)

    def _masks(self, phone: int, shares: dict[int, int]) -> dict[int, bytes]:
        """Neighbour → seed of the mask that a dropped phone has in common with it."""

        def opened(lock: bytes) -> tuple[bytes, ...] | None:
            return masks.open_list(lock, self.lists[phone], self.salt, phone)

        lock = self._rebuilt("lock", phone, shares, lambda lock: opened(lock) is not None)
        return dict(zip(self.neighbours[phone], opened(lock) or (), strict=True))

    def _rebuilt(
        self, what: str, phone: int, shares: dict[int, int], matches: Callable[[bytes], bool]
    ) -> bytes:
        holders, threshold = self.neighbours[phone], self.parameters.threshold
        trusted = {at: share for at, share in shares.items() if holders[at - 1] not in self.liars}
        # An owner may have dealt wrong shares to honest holders, so all are tried in the end.
        for tried in (trusted, shares) if threshold <= len(trusted) < len(shares) else (shares,):
            try:
                recovered = recover_checked(tried, threshold, len(holders), matches)
            except UnrecoverableSecretError as error:
                failure = error
            else:
                self.liars.update(holders[at - 1] for at in recovered.wrong)
                return recovered.secret
        raise UnrecoverableSecretError(f"{what} of phone {phone}: {failure}") from failure


def split(phones: tuple[int, ...], survivors: set[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The phones that survived, and those that dropped, each in the order given."""
    return (
        tuple(phone for phone in phones if phone in survivors),
        tuple(phone for phone in phones if phone not in survivors),
    )
