"""Lists of reports, as a leader writes them and a helper reads them.

An entry is a report's identifier and its sealed seed. Where inputs are proved, the public share and
the leader's verifier share follow (draft-irtf-cfrg-vdaf-20).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import NamedTuple

from earshot_protocol.errors import MalformedMessageError
from earshot_protocol.two_operators.parameters import TwoOperatorParameters
from earshot_protocol.two_operators.sizes import sizes


class ListEntry(NamedTuple):
    """An entry of the list.

    Attributes:
        report_id: Identifier of the report.
        sealed: Seed of the helper's share, sealed by the phone.
        public: Public share of a proved input; empty otherwise.
        verifier: The leader's verifier share of it; empty otherwise.
    """

    report_id: bytes
    sealed: bytes
    public: bytes = b""
    verifier: bytes = b""


def count(reports: bytes, parameters: TwoOperatorParameters) -> int:
    """Return the number of entries of a list.

    Raises:
        MalformedMessageError: The list ends within an entry.
    """
    found, rest = divmod(len(reports), sum(sizes(parameters).entry))
    if rest:
        raise MalformedMessageError(f"a list of reports ends with {rest} bytes of one")
    return found


def entries(reports: bytes, parameters: TwoOperatorParameters) -> Iterator[ListEntry]:
    """Yield the entries of a list, which has only whole ones."""
    ends = (0, *accumulate(sizes(parameters).entry))
    for at in range(0, len(reports), ends[-1]):
        yield ListEntry(*(reports[at + first : at + last] for first, last in pairwise(ends)))
