"""The summation of Bell et al. (CCS 2020) as a value, and the names of its rounds."""

from __future__ import annotations

from earshot_protocol.secure_sum import answers
from earshot_protocol.secure_sum.aggregator import Aggregator
from earshot_protocol.secure_sum.interface import Asks, Summation, SumRound
from earshot_protocol.secure_sum.participant import Participant
from earshot_protocol.secure_sum.rounds import Round

BELL = Summation(
    rounds=(
        SumRound(Round.ADVERTISE_KEYS, Asks.EVERYONE),
        SumRound(Round.SHARE_KEYS, Asks.REMAINING),
        SumRound(Round.MASKED_INPUT, Asks.REMAINING, carries_input=True),
        SumRound(Round.UNMASK, Asks.REMAINING),
    ),
    participant=Participant,
    aggregator=Aggregator,
    check=answers.check,
)
