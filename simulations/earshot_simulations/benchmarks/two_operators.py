"""Cost of sums by two operators, compared with Bell et al.'s sum and a physical floor, in one run.

The parties are the product's: phones that report, a leader, and a helper with its book in memory.
The floor is 200 X25519 exchanges, timed between the reports of the same run. Phones contribute
vectors, or proved ballots.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np

from earshot_protocol.prio3.shapes import Counts
from earshot_protocol.privacy.sum_noise import WholeGaussian, WholeLaplace
from earshot_protocol.progress import Progress, silent
from earshot_protocol.secure_sum.interface import HELPER
from earshot_protocol.sum_in_process import Vector, run_sum
from earshot_protocol.summations import TWO_OPERATORS
from earshot_protocol.two_operators.parameters import TwoOperatorParameters
from earshot_protocol.two_operators.rounds import OFFER, REPORT, TOTAL
from earshot_simulations.benchmarks.secure_sum import (
    LARGEST_ENTRY,
    SumMeasured,
    bell,
    random_inputs,
    staying_phones,
)
from earshot_simulations.engine.operators import SimulatedOperators

LENGTHS, BALLOTS = (100, 640, 1000, 10_000), (100, 640, 2000)
"""Entries of vectors and of proved ballots."""
FLOOR_EXCHANGES = 200
_MULTIPLIER = 2
"""Standard deviation of each operator's noise over the largest entry: w is 21 for 1,000 phones."""
_ONES = 5
"""Ones of a proved ballot."""
_SCALE = 2.0
"""Scale of each operator's noise on ballots: ε is 1 for a recording."""
_WINDOW = 86_400.0


def benchmark(
    phones: int,
    neighbours: int | None,
    lengths: Sequence[int],
    dropout: float,
    corrupted: float,
    progress: Progress = silent,
    *,
    proved: bool = False,
) -> list[dict[str, Any]]:
    """Run real sums over random inputs of each length, by two operators and by Bell et al.

    Args:
        phones: Number of phones.
        neighbours: Neighbours of a phone in Bell et al.'s sum; None for the smallest safe number.
        lengths: Entries of a vector, each between −1000 and 1000; a sum of both kinds for each.
        dropout: Fraction of phones that send no report, or drop out of Bell et al.'s sum.
        corrupted: Tolerated fraction of corrupted phones in Bell et al.'s sum.
        progress: Callback that receives the round, and the parties done and in all.
        proved: Whether phones put proved ballots of at most five ones into the sums by two
            operators, instead of vectors.

    Returns:
        A row for each length, by the names of the JSON output; times in milliseconds of CPU, for
        phones medians.

    Raises:
        InvalidParametersError: No sum is safe under these parameters.
        MissingExtraError: Ballots are to be proved, and the extra `proofs` is not installed.
    """
    rows = []
    if proved:  # compiles or loads the field arithmetic before anything is timed
        _sum(3, _ONES, 0, silent, proved=True)
    for length in lengths:
        figures, parameters = bell(phones, neighbours, length, dropout, corrupted, progress)
        dropped = parameters.largest_dropout_count
        row = _sum(phones, length, dropped, progress, proved=proved)
        rows.append(
            row
            | {
                "bell_neighbours": figures["neighbours"],
                "bell_phone_ms": figures["phone_cpu_ms"],
                "bell_phone_bytes": figures["bytes_up"],
                "bell_server_ms": figures["server_cpu_ms_per_survivor"],
            }
        )
    return rows


def _sum(
    phones: int, length: int, dropped: int, progress: Progress, *, proved: bool
) -> dict[str, Any]:
    values, staying = _inputs(phones, length, proved), staying_phones(phones, dropped)
    parameters = TwoOperatorParameters(
        phones=phones,
        shape=(length,),
        bound=1 if proved else LARGEST_ENTRY,
        noise=WholeLaplace.of(_SCALE)
        if proved
        else WholeGaussian.of((_MULTIPLIER * LARGEST_ENTRY) ** 2),
        least=len(staying),
        window=_WINDOW,
        proof=Counts(1, min(_ONES, length), length) if proved else None,
    )
    operators, measured = SimulatedOperators(seed=0), SumMeasured(progress)
    found = run_sum(
        parameters,
        lambda phone: values[phone],
        lambda name: staying,
        measured,
        dataclasses.replace(TWO_OPERATORS, aggregator=operators.keys),
        operators.answer,
    )
    reports = len(staying)
    away = np.abs(found.total - values[staying].sum(axis=0)).max()
    phone = 1000 * statistics.median(measured.answers[REPORT])
    floor = measured.floor_ms(FLOOR_EXCHANGES)
    return {
        "phones": phones,
        "reports": reports,
        "length": length,
        **({"ones": min(_ONES, length)} if proved else {"modulus_bits": parameters.modulus_bits}),
        "phone_ms": phone,
        "phone_bytes": statistics.mean(measured.up[phone] for phone in staying),
        "helper_ms": 1000 * sum(measured.answers[OFFER] + measured.answers[TOTAL]) / reports,
        "helper_bytes": measured.down[HELPER] / reports,
        "leader_ms": 1000 * measured.server_seconds / reports,
        "floor_ms": floor,
        "phone_over_floor": phone / floor,
        "within_noise": bool(away <= parameters.noise.reach(length)),
    }


def _inputs(phones: int, length: int, proved: bool) -> Vector:
    """Return inputs of phones, int64 (phones, length): vectors, or ballots with all their ones."""
    if not proved:
        return random_inputs(phones, length)
    ballots = np.zeros_like(random_inputs(phones, length))
    generator = np.random.default_rng(0)
    for ballot in ballots:
        ballot[generator.choice(length, min(_ONES, length), replace=False)] = 1
    return ballots
