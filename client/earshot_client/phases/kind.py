"""A phone's side of a kind of phase."""

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
"""Input of a phone to a secure sum, before noise."""

Contribute = Callable[[Memory, Any, Any], Input | ReleaseAnswer]
"""Function of the phone's memory, the phase's parameters and the task that begins a part."""


def _nothing(memory: Memory, what: Any) -> None:
    """Do nothing."""


def _nothing_used_up(memory: Memory) -> None:
    """Do nothing: any recording may be released again, at its cost."""


def _unheard(memory: Memory) -> str:
    """Return which recordings and labels are missing."""
    return memory.shortfall()


@dataclass(frozen=True)
class PhoneKind:
    """A phone's side of one kind of phase.

    Attributes:
        kind: Kind of phase on the wire.
        contribute: For each task that begins a part, the function that makes the input of its sum,
            or an answer that is private already.
        describe: Function that puts an ending into plain types, for the phone's user.
        released: Function that notes what a release has used up, in the transaction in which it is
            entered into the ledger.
        check: Function that refuses parameters that do not suit this phone, beyond what its policy
            refuses for every kind; raises `RefusedError`.
        finish: Function that keeps what the phone needs of the ending; raises
            `UnexpectedMessageError` if the ending is inconsistent.
        shortfall: Function that describes missing data, for the user; empty if there is none.
    """

    kind: Kind
    contribute: Mapping[type[PartTask], Contribute]
    describe: Callable[[Any], dict[str, Any]]
    released: Callable[[Memory], None] = _nothing_used_up
    check: Callable[[Memory, Any], None] = _nothing
    finish: Callable[[Memory, Any], None] = _nothing
    shortfall: Callable[[Memory], str] = _unheard
