"""The last step of a sum: the masks that the total still carries, rebuilt from revealed shares.

Every secret is rebuilt before any is used, so that a sum whose secrets cannot all be rebuilt stays
masked. All are first interpolated together, as if all shares were right; the few that then turn out
wrong are decoded one by one.

The masks of a phone that dropped are on the list that it sealed itself. Neighbours that reveal
their shares of its lock also send traces of the masks that they share with it: a list that
contradicts them would leave a total that is not a sum, so the sum fails and names the phones
(docs/decisions/0044).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from earshot_protocol.errors import RemoteError
from earshot_protocol.secure_sum import masks, shamir
from earshot_protocol.secure_sum.decoding import UnrecoverableSecretError, recover_checked
from earshot_protocol.secure_sum.messages import REVEALED_SHARE_BYTES, TRACE_BYTES
from earshot_protocol.secure_sum.neighbourhoods import Phones, Places
from earshot_protocol.secure_sum.parameters import SumParameters
from earshot_protocol.secure_sum.state import Crowd, Revealed

_TOGETHER = 1024
"""Phones whose shares are handled at a time."""
_MOST_NAMED = 8


class FalseMasksError(RemoteError):
    """A list of masks that contradicts the traces of its sealer's neighbours."""


@dataclass(frozen=True)
class Unmasking:
    """State of a sum when its last round closes.

    Attributes:
        salt: Salt of the sum's keys.
        parameters: Parameters of the sum.
        crowd: Phones that advertised keys, that shared them (A1), and whose input is in the total
            (A2).
        lists: Phone of A1 that is not in A2 → the seeds of its pairwise masks, sealed.
        commitments: Phone of A1 → the commitment to its seed.
        revealed: Phone → what it revealed: shares of its surviving, then of its dropped neighbours,
            and traces of the masks shared with the latter.
        liars: Phones of which a wrong share was found; their other shares are ignored where there
            are enough without them, so that each costs one decoding and not one for every
            neighbour.
    """

    salt: bytes
    parameters: SumParameters
    crowd: Crowd
    lists: Mapping[int, bytes]
    commitments: Mapping[int, bytes]
    revealed: Mapping[int, Revealed]
    liars: set[int] = field(default_factory=set)

    def masks(self) -> masks.Words:
        """Return the sum of all masks that are left in the total, `length` words.

        Raises:
            UnrecoverableSecretError: The shares do not determine a mask that must be removed.
            FalseMasksError: A list contradicts the traces of its sealer's neighbours.
        """
        parameters = self.parameters
        word = masks.word_type(parameters.modulus_bits)
        added = list(self._secrets("seed", np.flatnonzero(self.crowd.masked), self._matches))
        removed: list[bytes] = []
        left = self.crowd.neighbourhoods.counts(self.crowd.masked) > 0
        dropped = np.flatnonzero(self.crowd.dropped & left)
        locks = self._secrets("lock", dropped, self._opens)
        for phone, lock in zip(dropped.tolist(), locks, strict=True):
            others = self._neighbours(phone)
            common = dict(zip(others, self._opened(phone, lock) or (), strict=True))
            self._check_list(phone, common)
            for other, seed in common.items():
                if self.crowd.masked[other]:
                    (added if phone > other else removed).append(seed)
        total = masks.expand_sum(added, parameters.length, word)
        total -= masks.expand_sum(removed, parameters.length, word)
        return total

    # ----------------------------------------------------------------------------- shares

    @cached_property
    def _places(self) -> Places:
        """Index of each neighbour among those that advertised, the order of its shares."""
        return self.crowd.neighbourhoods.places(self.crowd.advertised)

    @cached_property
    def _collected(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
        """Shares of each owner by index, (phones, degree, 32), and a mask of those that are there.

        A share whose index is not its holder's place among the owner's neighbours is left out.
        """
        around = self.crowd.neighbourhoods
        shape = around.table.shape
        shares = np.zeros((*shape, shamir.SECRET_BYTES), dtype=np.uint8)
        present = np.zeros(shape, dtype=np.bool_)
        holders = sorted(self.revealed)
        for first in range(0, len(holders), _TOGETHER):
            some = holders[first : first + _TOGETHER]
            joined = b"".join(self.revealed[phone].shares for phone in some)
            raw = np.frombuffer(joined, dtype=np.uint8)
            owners, places = self._revealed_of(np.array(some))
            given = raw.reshape(-1, REVEALED_SHARE_BYTES)
            right = given[:, 0] == places
            at = owners[right], places[right] - 1
            shares[at] = given[right, 1:]
            present[at] = True
        return shares, present

    def _revealed_of(self, holders: Phones) -> tuple[Phones, Places]:
        """Return the owners of the shares that these phones reveal, and the holders' places."""
        around, crowd = self.crowd.neighbourhoods, self.crowd
        owners = around.table[holders]
        theirs = self._places[owners, around.back[holders]]
        kinds = np.where(crowd.masked[owners], 0, np.where(crowd.sealed[owners], 1, 2))
        order = np.argsort(kinds, axis=1, kind="stable")
        asked = np.take_along_axis(kinds, order, axis=1) < 2
        sorted_owners = np.take_along_axis(owners, order, axis=1)
        return sorted_owners[asked], np.take_along_axis(theirs, order, axis=1)[asked]

    # ------------------------------------------------------------------------------ lists

    def _check_list(self, phone: int, common: Mapping[int, bytes]) -> None:
        """Compare a phone's sealed list of masks with its neighbours' traces.

        With probability 1 − 2^-40 fewer than t neighbours of any phone are corrupted: if t or more
        contradict the list, the sealer lies. With fewer it is undecidable, and both sides are
        named.
        """
        told = self._told_of(phone)
        against = [other for other, trace in told.items() if masks.trace(common[other]) != trace]
        if len(against) >= self.parameters.threshold:
            raise FalseMasksError(
                f"phone {phone} sealed a false list of masks: {len(against)} of its "
                f"{len(told)} neighbours that answered share other masks with it"
            )
        if against:
            named = ", ".join(map(str, against[:_MOST_NAMED]))
            more = f" and {len(against) - _MOST_NAMED} more" if against[_MOST_NAMED:] else ""
            raise FalseMasksError(
                f"phone {phone} sealed other masks than those that its neighbours {named}{more} "
                "say they share with it: one side lies"
            )

    def _told_of(self, phone: int) -> dict[int, bytes]:
        """Return each neighbour's trace of the mask that it shares with a dropped phone."""
        around, told = self.crowd.neighbourhoods, {}
        for other, place in zip(around.table[phone].tolist(), around.back[phone], strict=True):
            if other in self.revealed:
                first = TRACE_BYTES * (int(self._places_gone[other, place]) - 1)
                told[other] = self.revealed[other].traces[first : first + TRACE_BYTES]
        return told

    @cached_property
    def _places_gone(self) -> Places:
        """Index of each dropped neighbour among those that dropped, the order of its traces."""
        return self.crowd.neighbourhoods.places(self.crowd.dropped)

    # ---------------------------------------------------------------------------- secrets

    def _secrets(
        self, what: str, phones: Phones, matches: Callable[[int, bytes], bool]
    ) -> Iterator[bytes]:
        """Return the secrets of these phones, in order; all are rebuilt before the first."""
        found = dict.fromkeys(phones.tolist(), b"")
        shares, present = self._collected
        dealt = self.crowd.neighbourhoods.counts(self.crowd.advertised)[phones]
        enough = np.count_nonzero(present[phones], axis=1) >= self.parameters.threshold
        for count in np.unique(dealt).tolist():
            of_count = phones[(dealt == count) & enough]
            for first in range(0, len(of_count), _TOGETHER):
                some = of_count[first : first + _TOGETHER]
                given = shares[some, :count], present[some, :count]
                for phone, secret in zip(some.tolist(), shamir.recover_many(*given), strict=True):
                    if matches(phone, secret):
                        found[phone] = secret
        for phone, secret in found.items():
            if not secret:
                found[phone] = self._rebuilt(what, phone, matches)
        return iter(found.values())

    def _rebuilt(self, what: str, phone: int, matches: Callable[[int, bytes], bool]) -> bytes:
        """Rebuild one secret, some of whose shares are wrong."""
        holders, threshold = self._neighbours(phone), self.parameters.threshold
        values, present = (table[phone] for table in self._collected)
        shares = {
            int(at) + 1: int.from_bytes(values[at].tobytes()) for at in np.flatnonzero(present)
        }
        trusted = {at: share for at, share in shares.items() if holders[at - 1] not in self.liars}
        # An owner may have dealt wrong shares to honest holders, so all are tried in the end.
        for tried in (trusted, shares) if threshold <= len(trusted) < len(shares) else (shares,):
            try:
                recovered = recover_checked(
                    tried, threshold, len(holders), lambda secret: matches(phone, secret)
                )
            except UnrecoverableSecretError as error:
                failure = error
            else:
                self.liars.update(holders[at - 1] for at in recovered.wrong)
                return recovered.secret
        raise UnrecoverableSecretError(f"{what} of phone {phone}: {failure}") from failure

    def _neighbours(self, phone: int) -> list[int]:
        """Return the neighbours that advertised, to whom the phone's shares were dealt."""
        row = self.crowd.neighbourhoods.table[phone]
        return list(map(int, row[self.crowd.advertised[row]]))

    def _matches(self, phone: int, seed: bytes) -> bool:
        return masks.commitment(seed, self.salt, phone) == self.commitments[phone]

    def _opened(self, phone: int, lock: bytes) -> tuple[bytes, ...] | None:
        return masks.open_list(lock, self.lists[phone], self.salt, phone)

    def _opens(self, phone: int, lock: bytes) -> bool:
        return self._opened(phone, lock) is not None
