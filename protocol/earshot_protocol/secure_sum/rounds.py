"""The rounds of the summation of Bell et al. (CCS 2020)."""

from __future__ import annotations

import enum


class Round(enum.StrEnum):
    """State of one side of a sum: the round whose tasks it gives, or answers, next."""

    ADVERTISE_KEYS = "advertise keys"
    SHARE_KEYS = "share keys"
    MASKED_INPUT = "masked input"
    UNMASK = "unmask"
    DONE = "done"
    FAILED = "failed"


NEXT: dict[Round, Round] = dict(zip(tuple(Round)[:4], tuple(Round)[1:5], strict=True))
"""The only way forward; a sum that cannot continue moves to `FAILED` instead."""

VERSION = 4
"""Version of the protocol; phones and servers of different versions cannot sum together."""
FORMER_SUM = "this secure sum began under a former version of the protocol and cannot go on"
"""Reason for ending a sum that a phone or server saved before it was upgraded."""
