"""What phones sealed for one another, on its way through the server: by recipient, and gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from earshot_protocol.secure_sum.messages import SEALED_SHARES_BYTES
from earshot_protocol.secure_sum.neighbourhoods import Members, Neighbourhoods, Phones

_BLOCK_BYTES = 40 * 2**20
"""Of recipients that lie in one block: what is large goes back to the system when it is freed."""


class Mail:
    """Ciphertexts of one sum, each at its recipient's place for its sender.

    It lies in blocks of recipients, so that a block can be let go once it is delivered: while tasks
    are written, what they hold and what is still here is one copy and not two.

    Args:
        neighbourhoods: of the sum.
        blocks: of mail that was saved.
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
        """The blocks, as they lie here."""
        return [block.data.cast("B") for block in self._blocks]

    def put(self, senders: Sequence[int], sealed: Iterable[bytes], members: Members) -> None:
        """Take what these phones sealed: one for each neighbour that is a member, each."""
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
        """What those neighbours that are members sealed for each of these phones, of one block."""
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
        """The recipients, block by block; a block is gone when the next one is asked for."""
        first = 0
        for number in range(len(self._blocks)):
            last = first + len(self._blocks[number])
            yield range(first, last)
            self._blocks[number] = np.zeros((0, 0, 0), np.uint8)
            first = last
