"""State of the server's side between rounds, and the phones that take part."""

from __future__ import annotations

from collections.abc import Collection

import msgspec
import numpy as np

from earshot_protocol.secure_sum.neighbourhoods import Members, Neighbourhoods
from earshot_protocol.secure_sum.parameters import SumParameters
from earshot_protocol.secure_sum.points import KEY_BYTES
from earshot_protocol.secure_sum.rounds import Round


class Sealed(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Kept parts of a phone's answer in round 1, see `messages.SharedKeys`."""

    masks: bytes
    commitment: bytes


class Revealed(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Kept parts of a phone's answer in round 3, see `messages.Unmasked`."""

    shares: bytes
    traces: bytes


class State(msgspec.Struct):
    """State that an aggregator saves."""

    round: Round
    sum_id: bytes
    parameters: SumParameters
    graph: bytes
    total: bytes
    salt: bytes
    """Salt of the sum's keys."""
    public_keys: dict[int, bytes] = msgspec.field(default_factory=dict)
    """Phone that advertised → its public key."""
    sealed: dict[int, Sealed] = msgspec.field(default_factory=dict)
    """Phone of A1 → the list that it sealed, and its commitment."""
    mail: list[memoryview] = msgspec.field(default_factory=list)
    """Ciphertexts that are not handed over yet, see `Mail`."""
    masked: set[int] = msgspec.field(default_factory=set)
    """Phones whose input arrived: A2."""
    revealed: dict[int, Revealed] = msgspec.field(default_factory=dict)
    """Phone → the shares and traces that it revealed."""


class Crowd:
    """Phones that are in a sum in the present round, as tables over all of its phones.

    Attributes:
        sum_id: Identifier of the sum.
        parameters: Parameters of the sum.
        neighbourhoods: Neighbourhoods of the graph.
        advertised: Phones that advertised keys.
        sealed: A1, the phones that shared keys.
        masked: A2, the phones whose input is in.
        dropped: Phones of A1 that are not in A2.
        counts: Number of neighbours of each phone that are in by the round before.
        gone: Number of these neighbours that have dropped, once that is known.
        keys: Public key of each phone, in the round that sends them; uint8 of shape (phones, 32).
    """

    def __init__(self, state: State, neighbourhoods: Neighbourhoods) -> None:
        parameters = state.parameters
        self.sum_id = state.sum_id
        self.parameters = parameters
        self.neighbourhoods = neighbourhoods
        self.advertised = marked(state.public_keys, parameters)
        self.sealed = marked(state.sealed, parameters)
        self.masked = marked(state.masked, parameters)
        self.dropped = self.sealed & ~self.masked
        self.counts = self.gone = np.zeros(0, dtype=np.intp)
        self.keys = np.zeros((0, KEY_BYTES), dtype=np.uint8)
        if state.round is Round.SHARE_KEYS:
            self.counts = neighbourhoods.counts(self.advertised)
            self.keys = np.zeros((parameters.phones, KEY_BYTES), dtype=np.uint8)
            keys = np.frombuffer(b"".join(state.public_keys.values()), dtype=np.uint8)
            self.keys[list(state.public_keys)] = keys.reshape(-1, KEY_BYTES)
        elif state.round in (Round.MASKED_INPUT, Round.UNMASK):
            self.counts = neighbourhoods.counts(self.sealed)
        if state.round is Round.UNMASK:
            self.gone = neighbourhoods.counts(self.dropped)


def marked(phones: Collection[int], parameters: SumParameters) -> Members:
    """Return a mask of these phones."""
    marks = np.zeros(parameters.phones, dtype=np.bool_)
    marks[list(phones)] = True
    return marks
