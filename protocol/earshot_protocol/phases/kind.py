"""What a kind of phase is made of, on the wire."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable
from typing import Any, NamedTuple

from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import Outcome, PartTask, ReleaseAnswer


class Kind(NamedTuple):
    """The types of a kind of phase.

    Attributes:
        parameters: what is agreed on, and what the plan is derived from.
        tasks: that begin its parts.
        answers: to its local releases.
        outcome: what it publishes.
    """

    parameters: type[Parameters]
    tasks: tuple[type[PartTask], ...]
    answers: tuple[type[ReleaseAnswer], ...]
    outcome: type[Outcome]


def union(types: Iterable[type]) -> Any:
    """The union of these types, which a decoder reads by their tags."""
    return functools.reduce(operator.or_, types)
