"""The rounds of a sum by two operators."""

from __future__ import annotations

from earshot_protocol.secure_sum.interface import Asks, SumRound

OFFER, REPORT, TOTAL, DONE = "offer", "report", "total", "done"

ROUNDS = (
    SumRound(OFFER, Asks.HELPER),
    SumRound(REPORT, Asks.EVERYONE, carries_input=True, keeps_answers=True),
    SumRound(TOTAL, Asks.HELPER),
)
