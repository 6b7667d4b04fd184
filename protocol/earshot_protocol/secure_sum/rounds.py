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
"""Successor of each round; a sum that cannot continue moves to `FAILED`."""
