"""Cost of sums by two operators, compared with Bell et al.'s sum and a physical floor, in one run.

The parties are the product's: phones that report, a leader, and a helper with its book in memory.
The floor is 200 X25519 exchanges, timed between the reports of the same run. Phones contribute
vectors of length 1, as discovery and statistics sum them, or ballots, and prove them or not.
"""

from __future__ import annotations

import dataclasses
import enum
import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np

from earshot_protocol.prio3.prio3 import Prio3
from earshot_protocol.prio3.shapes import Counts, Norm, ballot
from earshot_protocol.privacy.mechanisms import GRID
from earshot_protocol.privacy.sum_noise import WholeGaussian, WholeLaplace
from earshot_protocol.progress import Progress, silent
from earshot_protocol.secure_sum.interface import Summation
from earshot_protocol.sum_in_process import Vector, run_sum
from earshot_protocol.summations import TWO_OPERATORS
from earshot_protocol.two_operators.messages import AddUp
from earshot_protocol.two_operators.parameters import TwoOperatorParameters
from earshot_protocol.two_operators.rounds import OFFER, REPORT, TOTAL
from earshot_protocol.voting.vectors import unit_steps
from earshot_protocol.wire import Answer, Task
from earshot_simulations.benchmarks.secure_sum import (
    SumMeasured,
    bell,
    random_inputs,
    staying_phones,
)
from earshot_simulations.engine.operators import CompiledParticipant, SimulatedOperators

LENGTHS = (640, 2560)
"""Entries of an input: a sum of labels of ten rows, and one of twenty cells of 128 numbers."""
REACH = {
    640: {"phone_ms": 12.0, "phone_compiled_ms": 2.5, "leader_ms": 0.5, "helper_ms": 0.6},
    2560: {"phone_ms": 20.0, "phone_compiled_ms": 5.0, "leader_ms": 1.1, "helper_ms": 1.3},
}
"""Most that a proved vector is meant to cost on a machine that does nothing else, by length."""
FLOOR_EXCHANGES = 200
_MULTIPLIER = 2
"""Standard deviation of each operator's noise on vectors, over their length."""
_ONES = 5
"""Ones of a ballot."""
_SCALE = 2.0
"""Scale of each operator's noise on ballots: ε is 1 for a recording."""
_WINDOW = 86_400.0
_COMPILED = dataclasses.replace(TWO_OPERATORS, participant=CompiledParticipant)


class Input(enum.StrEnum):
    """What phones put into a sum."""

    UNPROVED = "vectors, unproved"
    VECTORS = "vectors"
    BALLOTS = "ballots"


_COLUMNS = (
    *("sum", "length", "phones", "reports", "phone_ms", "phone_compiled_ms", "phone_over_floor"),
    *("floor_ms", "leader_ms", "helper_ms", "phone_bytes", "share_bytes", "entry_bytes"),
    "within_noise",
)
"""Figures of a row; None where a sum has none."""


def benchmark(
    phones: int,
    neighbours: int | None,
    lengths: Sequence[int],
    dropout: float,
    corrupted: float,
    progress: Progress = silent,
    inputs: Sequence[Input] = tuple(Input),
) -> list[dict[str, Any]]:
    """Run real sums over random inputs of each length, by two operators and by Bell et al.

    Args:
        phones: Number of phones.
        neighbours: Neighbours of a phone in Bell et al.'s sum; None for the smallest safe number.
        lengths: Entries of an input; a sum of each kind for each.
        dropout: Fraction of phones that send no report, or drop out of Bell et al.'s sum.
        corrupted: Tolerated fraction of corrupted phones in Bell et al.'s sum.
        progress: Callback that receives the round, and the parties done and in all.
        inputs: What phones put into the sums by two operators. Where it is proved, a second sum has
            phones with compiled arithmetic, as simulated ones have.

    Returns:
        Rows by the names of the JSON output, for each length: Bell et al.'s sum, whose server
        stands under `leader_ms`; a sum of each kind of input; and what vectors are meant to cost,
        where that is said. Times are in milliseconds of CPU, for phones medians, for operators
        divided by the reports. `share_bytes` is the leader's share, `entry_bytes` what the list has
        of a report.

    Raises:
        InvalidParametersError: No sum is safe under these parameters.
        MissingExtraError: Inputs are to be proved, and the extra `proofs` is not installed.
    """
    rows = []
    for each in inputs:  # compiles or loads the field's arithmetic before anything is timed
        _sum(each, 3, _ONES, 0, silent, _COMPILED)
    for length in lengths:
        figures, parameters = bell(phones, neighbours, length, dropout, corrupted, progress)
        dropped = parameters.largest_dropout_count
        rows.append(_of_bell(figures))
        for each in inputs:
            row = _sum(each, phones, length, dropped, progress, TWO_OPERATORS)
            if each is not Input.UNPROVED:
                compiled = _sum(each, phones, length, dropped, progress, _COMPILED)
                row["phone_compiled_ms"] = compiled["phone_ms"]
            rows.append(row)
            if each is Input.VECTORS and length in REACH:
                rows.append({"sum": "vectors: at most", "length": length, **REACH[length]})
    return [{name: row.get(name) for name in _COLUMNS} for row in rows]


def _of_bell(figures: dict[str, Any]) -> dict[str, Any]:
    floor = figures["floor_ms"] * FLOOR_EXCHANGES / figures["neighbours"]
    return {
        "sum": "Bell et al.",
        "length": figures["length"],
        "phones": figures["phones"],
        "reports": figures["survivors"],
        "phone_ms": figures["phone_cpu_ms"],
        "phone_over_floor": figures["phone_cpu_ms"] / floor,
        "floor_ms": floor,
        "leader_ms": figures["server_cpu_ms_per_survivor"],
        "phone_bytes": figures["bytes_up"],
        "within_noise": figures["exact"],
    }


def _sum(
    kind: Input, phones: int, length: int, dropped: int, progress: Progress, summation: Summation
) -> dict[str, Any]:
    values, staying = _inputs(kind, phones, length), staying_phones(phones, dropped)
    parameters = _parameters(kind, phones, length, len(staying))
    operators, measured = SimulatedOperators(seed=0), SumMeasured(progress)
    reports, listed = len(staying), [0]

    def helper(task: Task) -> Answer:
        if isinstance(task, AddUp):
            listed.append(len(task.reports))
        return operators.answer(task)

    found = run_sum(
        parameters,
        lambda phone: values[phone],
        lambda name: staying,
        measured,
        dataclasses.replace(summation, aggregator=operators.keys),
        helper,
    )
    away = np.abs(found.total - values[staying].sum(axis=0)).max()
    phone = 1000 * statistics.median(measured.answers[REPORT])
    floor = measured.floor_ms(FLOOR_EXCHANGES)
    return {
        "sum": kind.value,
        "length": length,
        "phones": phones,
        "reports": reports,
        "phone_ms": phone,
        "phone_over_floor": phone / floor,
        "floor_ms": floor,
        "leader_ms": 1000 * measured.server_seconds / reports,
        "helper_ms": 1000 * sum(measured.answers[OFFER] + measured.answers[TOTAL]) / reports,
        "phone_bytes": statistics.mean(measured.up[phone] for phone in staying),
        "share_bytes": _share_bytes(parameters),
        "entry_bytes": listed[-1] / reports,
        "within_noise": bool(away <= parameters.noise.reach(length)),
    }


def _share_bytes(parameters: TwoOperatorParameters) -> int:
    if parameters.proof is None:
        return -(-parameters.length * parameters.modulus_bits // 8)
    return Prio3(parameters.proof, parameters.length).leader_share_bytes


def _parameters(kind: Input, phones: int, length: int, least: int) -> TwoOperatorParameters:
    bound: int = GRID
    noise: WholeGaussian | WholeLaplace = WholeGaussian.of((_MULTIPLIER * GRID) ** 2)
    proof: Norm | Counts | None = Norm()
    if kind is Input.UNPROVED:
        proof = None
    elif kind is Input.BALLOTS:
        bound, noise, proof = 1, WholeLaplace.of(_SCALE), ballot(length, min(_ONES, length))
    return TwoOperatorParameters(
        phones=phones,
        shape=(length,),
        bound=bound,
        noise=noise,
        least=least,
        window=_WINDOW,
        proof=proof,
    )


def _inputs(kind: Input, phones: int, length: int) -> Vector:
    """Return inputs of phones, int64 (phones, length): vectors, or ballots with all their ones."""
    values = random_inputs(phones, length)
    if kind is not Input.BALLOTS:
        steps = values * (unit_steps(length) / np.linalg.norm(values, axis=1, keepdims=True))
        vectors: Vector = np.rint(steps).astype(np.int64)
        return vectors
    ballots = np.zeros_like(values)
    generator = np.random.default_rng(0)
    for one in ballots:
        one[generator.choice(length, min(_ONES, length), replace=False)] = 1
    return ballots
