"""The random regular graph of neighbours, and a phone's check of its neighbourhood."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.errors import InvalidInputError, RefusedError
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.secure_sum.parameters import SumParameters
from earshot_protocol.secure_sum.points import KEY_BYTES, LOW_ORDER, points


class Graph:
    """A random k-regular graph over the phones 0 … n−1 (Bell et al. 2020, section 3).

    A uniformly random permutation lays the phones on a ring; those at distance at most k/2 are
    neighbours. With n ≤ k+1 all phones are neighbours of each other. The graph takes eight bytes a
    phone.
    """

    def __init__(self, parameters: SumParameters, ring: NDArray[np.uint32]) -> None:
        """Keep the graph of a given ring; `draw` and `from_bytes` make one.

        Args:
            parameters: Parameters that give the number of phones and the degree.
            ring: Phone at each position of the ring, each phone once, uint32 (phones,).

        Raises:
            InvalidInputError: `ring` is not a permutation of the phones.
        """
        self.phones = parameters.phones
        self.degree = parameters.degree
        if not np.array_equal(np.sort(ring), np.arange(self.phones, dtype=np.uint32)):
            raise InvalidInputError(
                f"a graph's ring must hold each of the phones 0 to {self.phones - 1} once"
            )
        self._ring = ring
        self._position = np.empty_like(ring)
        self._position[ring] = np.arange(self.phones, dtype=np.uint32)
        half = self.degree // 2
        self._offsets = np.concatenate((np.arange(-half, 0), np.arange(1, half + 1)))

    @classmethod
    def draw(cls, parameters: SumParameters, random: RandomBytes = os.urandom) -> Graph:
        """Draw a graph at random.

        Sorting n independent 128-bit keys orders the phones uniformly unless two keys are equal,
        which happens with probability below n² · 2^-129.

        Args:
            parameters: Checked parameters of the sum.
            random: Source of `16 · phones` bytes.
        """
        keys = np.frombuffer(random(16 * parameters.phones), dtype="<u8").reshape(2, -1)
        return cls(parameters, np.lexsort(keys).astype(np.uint32))

    def table(self) -> NDArray[np.uint32]:
        """Return the neighbours of every phone, ascending: uint32 of shape (phones, degree)."""
        own = np.arange(self.phones, dtype=np.uint32)[:, None]
        if self.degree == self.phones - 1:
            others = np.arange(self.degree, dtype=np.uint32)
            return others + (others >= own).astype(np.uint32)
        places = (self._position[:, None].astype(np.int64) + self._offsets) % self.phones
        return np.sort(self._ring[places], axis=1)

    def to_bytes(self) -> bytes:
        """Return the ring as little-endian uint32, four bytes a phone."""
        return self._ring.astype("<u4").tobytes()

    @classmethod
    def from_bytes(cls, data: bytes, parameters: SumParameters) -> Graph:
        """Restore what `to_bytes` saved, under the same parameters.

        Raises:
            InvalidInputError: `data` is not a ring of that many phones.
        """
        if len(data) != 4 * parameters.phones:
            raise InvalidInputError(
                f"a saved graph of {parameters.phones} phones has {4 * parameters.phones} bytes, "
                f"not {len(data)}"
            )
        return cls(parameters, np.frombuffer(data, dtype="<u4").astype(np.uint32))


def check_neighbourhood(
    phone: int,
    own_key: bytes,
    neighbours: Sequence[int],
    public_keys: Sequence[bytes],
    parameters: SumParameters,
) -> None:
    """Check the neighbourhood that the server sends to a phone.

    Repeated phones or keys would let one party hold several shares of a secret; too few neighbours
    could not rebuild it.

    Args:
        phone: Phone that checks.
        own_key: Public key of the phone.
        neighbours: Neighbours of the phone that advertised keys, ascending.
        public_keys: Public keys of the neighbours, in that order.
        parameters: Checked parameters of the sum.

    Raises:
        RefusedError: The neighbourhood breaks a rule, which the message names.
    """
    count = len(neighbours)
    if not parameters.threshold <= count <= parameters.degree:
        raise RefusedError(
            f"a neighbourhood must have {parameters.threshold} to {parameters.degree} phones, "
            f"not {count}"
        )
    if list(neighbours) != sorted(set(neighbours)):
        raise RefusedError("neighbours must be listed once each, in ascending order")
    if neighbours[0] < 0 or neighbours[-1] >= parameters.phones:
        raise RefusedError(f"neighbours must be from 0 to {parameters.phones - 1}")
    if phone in neighbours:
        raise RefusedError(f"phone {phone} cannot be its own neighbour")
    if len(public_keys) != count:
        raise RefusedError(f"{count} neighbours need as many public keys, not {len(public_keys)}")
    if set(map(len, public_keys)) != {KEY_BYTES}:
        raise RefusedError(f"a neighbour's public key must have {KEY_BYTES} bytes")
    theirs = points(public_keys)
    if not theirs.isdisjoint(LOW_ORDER):
        raise RefusedError("a neighbour's key is not a usable X25519 key: it is of low order")
    if len(theirs) != count:
        raise RefusedError("the neighbours' public keys must all be distinct")
    if not theirs.isdisjoint(points((own_key,))):
        raise RefusedError("a neighbour is listed with this phone's own key")
