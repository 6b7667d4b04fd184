"""Ciphertexts that phones sealed for one another, by recipient, on their way through the server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from earshot_protocol.secure_sum.messages import SEALED_SHARES_BYTES
from earshot_protocol.secure_sum.neighbourhoods import Members, Neighbourhoods, Phones

_BLOCK_BYTES = 40 * 2**20
"""Bytes of the recipients in one block: large blocks go back to the system when they are freed."""


class Mail:
    """Ciphertexts of one sum, each at its recipient's place for its sender.

    They lie in blocks of recipients, so that a block can be freed once it is delivered: while tasks
    are written, the ciphertexts in them and those still here make one copy, not two.

    Args:
        neighbourhoods: Neighbourhoods of the sum.
        blocks: Blocks of mail that was saved.
    """

    def __init__(self, neighbourhoods: Neighbourhoods, blocks: Iterable[memoryview] = ()) -> None:
        self._neighbourhoods = neighbourhoods
        phones, degree = neighbourhoods.table.shape
        self._recipients = max(1, _BLOCK_BYTES // (degree * SEALED_SHARES_BYTES))
        shapes = [
            (min(self._recipients, phones - first), degree, SEALED_SHARES_BYTES)
            for first in range(0, phones, self._recipients)
        ]
        saved = [np.frombuffer(block, np.uint8).copy() for block in blocks]
        self._blocks: list[npt.NDArray[np.uint8]] = (
            [block.reshape(shape) for block, shape in zip(saved, shapes, strict=True)]
            if saved
            else [np.zeros(shape, np.uint8) for shape in shapes]
        )

    def save(self) -> list[memoryview]:
        """Return the blocks without copying them."""
        return [block.data.cast("B") for block in self._blocks]

    def put(self, senders: Sequence[int], sealed: Iterable[bytes], members: Members) -> None:
        """Store what these phones sealed: from each, one ciphertext per member neighbour."""
        phones = np.array(senders)
        table = self._neighbourhoods.table[phones]
        around = members[table]
        recipients, places = table[around], self._neighbourhoods.back[phones][around]
        texts = np.frombuffer(b"".join(sealed), np.uint8).reshape(-1, SEALED_SHARES_BYTES)
        blocks, rows = np.divmod(recipients, np.uint32(self._recipients))
        for block in np.unique(blocks):
            own = blocks == block
            self._blocks[block][rows[own], places[own]] = texts[own]

    def to(self, phones: Phones, members: Members) -> Iterator[tuple[bytes, ...]]:
        """Yield what member neighbours sealed for each of these phones, all of one block."""
        if not len(phones):
            return
        around = members[self._neighbourhoods.table[phones]]
        number, first = divmod(int(phones[0]), self._recipients)
        sealed = self._blocks[number][phones - phones[0] + first][around]
        at = 0
        for count in np.count_nonzero(around, axis=1).tolist():
            data = sealed[at : at + count].tobytes()
            size = SEALED_SHARES_BYTES
            yield tuple(data[begin : begin + size] for begin in range(0, len(data), size))
            at += count

    def leaving(self) -> Iterator[range]:
        """Yield the recipients, block by block; a block is freed when the next one is requested."""
        first = 0
        for number in range(len(self._blocks)):
            last = first + len(self._blocks[number])
            yield range(first, last)
            self._blocks[number] = np.zeros((0, 0, 0), np.uint8)
            first = last
