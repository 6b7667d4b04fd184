"""What a kind of phase is to a phone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from earshot_client.phases.memory import Memory
from earshot_protocol.phases.parameters import Kind
from earshot_protocol.phases.plan import PartTask, ReleaseAnswer

Input = npt.NDArray[np.int64]
"""What a phone puts into a secure sum, before noise."""

Contribute = Callable[[Memory, Any, Any], Input | ReleaseAnswer]
"""Takes what the phone knows, the phase's parameters and the task that begins a part."""


def _nothing(memory: Memory, what: Any) -> None:
    """Nothing to check, or to keep."""


def _nothing_used_up(memory: Memory) -> None:
    """Whatever was released may be released again, at its price."""


def _unheard(memory: Memory) -> str:
    """What recordings and labels lack."""
    return memory.shortfall()


@dataclass(frozen=True)
class PhoneKind:
    """A phone's side of one kind of phase.

    Attributes:
        kind: on the wire.
        contribute: for each task that begins a part: an input of its sum, or the answer that the
            phone made private itself.
        describe: an ending in plain types, for the phone's user.
        released: notes what a release that is entered into the ledger has used up, in the same
            transaction.
        check: refuses parameters that do not suit this phone, beyond what its policy refuses for
            every kind; raises `RefusedError`.
        finish: keeps what the phone needs of the ending; raises `UnexpectedMessageError` if that
            makes no sense.
        shortfall: what the phone's part lacks, for its user; empty if nothing.
    """

    kind: Kind
    contribute: Mapping[type[PartTask], Contribute]
    describe: Callable[[Any], dict[str, Any]]
    released: Callable[[Memory], None] = _nothing_used_up
    check: Callable[[Memory, Any], None] = _nothing
    finish: Callable[[Memory, Any], None] = _nothing
    shortfall: Callable[[Memory], str] = _unheard
