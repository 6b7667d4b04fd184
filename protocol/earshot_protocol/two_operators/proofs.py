"""Proved inputs in a sum by two operators: Prio3 under an offer.

The digest of the offer is the context of the proofs and binds them to the sum: it covers the length
of a vector and the shape of valid ones, which the draft leaves to the application.
"""

from __future__ import annotations

import functools
import importlib.util
from dataclasses import replace

from earshot_protocol.errors import WrongStateError
from earshot_protocol.prio3.field import Arithmetic
from earshot_protocol.prio3.prio3 import Prio3
from earshot_protocol.prio3.shapes import Shape
from earshot_protocol.two_operators.messages import Offer


def available() -> bool:
    """Return whether the extra `proofs` is installed."""
    return importlib.util.find_spec("Cryptodome") is not None


def proof_of(offer: Offer, arithmetic: Arithmetic | None = None) -> Prio3:
    """Return the proof system of inputs under an offer.

    Args:
        offer: Offer of a sum of proved inputs.
        arithmetic: Engine that computes in the field; by default the one that phones have.

    Raises:
        WrongStateError: Inputs under this offer are not proved.
    """
    parameters = offer.parameters
    if parameters.proof is None:
        raise WrongStateError("the inputs of this sum are not proved")
    found = _proof(parameters.proof, parameters.length, offer.digest())
    return found if arithmetic is None else replace(found, arithmetic=arithmetic)


@functools.lru_cache(4)  # a leader checks one report after the other under the same offer
def _proof(shape: Shape, length: int, context: bytes) -> Prio3:
    return Prio3(shape, length, context=context)
