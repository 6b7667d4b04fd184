"""Cost to the server of closing a step, by the number of phones, beside its floor.

Closing is everything between the last answer and the next step: reading the answers, advancing the
sum, and writing the snapshot and the tasks. Each step is closed in a process of its own, whose
largest resident size counts as the step's, including whatever the store holds in memory. The floor
is reading, decoding and adding up the same bytes in the same process.

The phones take part in the sum of votes of a labelling phase; see `closing_phones`.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection

import numpy as np

from earshot_protocol.checks import whole
from earshot_protocol.messages import decode_answer, decode_task
from earshot_protocol.phases.labelling import LabellingParameters, LabelSamples
from earshot_protocol.wire import Matrix
from earshot_server.phases.coordinator import Coordinator
from earshot_server.phases.labelling import LabellingPhase
from earshot_server.processes.parent import end_with
from earshot_server.store.interface import PhaseStore
from earshot_simulations.benchmarks.api.usage import peak_memory
from earshot_simulations.benchmarks.closing_phones import CheapPhones
from earshot_simulations.benchmarks.closing_stores import Ground, InFiles, OnPostgres
from earshot_simulations.benchmarks.failure import BenchmarkError
from earshot_simulations.temporary import TemporaryFolder

Progress = Callable[[str, int, int], None]
Row = dict[str, object]

_LABELS = ("bus", "park", "street", "woods")
_DIMENSIONS = 16
_CORRUPTED = 0.05
_MEBIBYTE = 2**20


def benchmark(
    sizes: list[int],
    length: int,
    dropout: float,
    postgres: bool,
    progress: Progress = lambda what, done, total: None,
) -> list[Row]:
    """Close the four steps of a secure sum for each number of phones.

    Args:
        sizes: Numbers of phones.
        length: Entries of a masked vector, rounded up to whole samples of four labels.
        dropout: Fraction ρ of phones that vanish after sharing their keys.
        postgres: Whether the store is a PostgreSQL database of the benchmark's own; otherwise it is
            in memory.
        progress: Callback that receives the number of closed steps.

    Returns:
        A row for each step, by the names of the JSON output: seconds by the clock and of CPU.

    Raises:
        InvalidParametersError: No phase would start with a given number; raised before any work.
        BenchmarkError: A step was not closed, or its total is wrong.
    """
    whole("length", length, 1, 4 * 4096)
    every = [_parameters(phones, length, dropout) for phones in sizes]
    for parameters in every:
        parameters.check_feasible()
    rows: list[Row] = []
    with TemporaryFolder("bench") as temporary:
        folder = temporary.path
        with contextlib.ExitStack() as stack:
            url = ""
            if postgres:
                from earshot_server.processes.embedded import embedded

                url = stack.enter_context(embedded(folder / "database")).url
            for parameters in every:
                ground = OnPostgres(url) if postgres else InFiles(folder)
                for row in _closed(parameters, ground):
                    rows.append(row)
                    progress("steps", len(rows), 4 * len(every))
    return rows


def _parameters(phones: int, length: int, dropout: float) -> LabellingParameters:
    samples = math.ceil(length / len(_LABELS))
    points = np.random.default_rng(0).standard_normal((samples, _DIMENSIONS))
    return LabellingParameters(
        phones=phones,
        labels=_LABELS,
        encoder="points",
        samples=Matrix.of(points),
        votes_noise=20.0,
        check_noise=20.0,
        threshold=1.0,
        dropout=dropout,
        corrupted=_CORRUPTED,
    )


def _closed(parameters: LabellingParameters, ground: Ground) -> Iterator[Row]:
    """Run a phase from its start to the end of its first sum."""
    phase = ground.begin(parameters)
    opening = decode_task(ground.common())
    if not isinstance(opening, LabelSamples):
        raise BenchmarkError(f"the phase begins with {type(opening).__name__}")
    least = parameters.least_survivors
    gone = np.random.default_rng(1).permutation(parameters.phones)[least:]
    phones = CheapPhones(opening, gone.tolist())
    for number, step in enumerate(parameters.plan().steps[:4]):
        answers = phones.answers(ground.tasks()) if number else phones.advertised()
        ground.give(answers)
        expected = phones.total() if number == 3 else None
        measured = _in_a_process(ground, phase, expected)
        yield {"phones": parameters.phones, "step": step.name, **measured}


def _in_a_process(ground: Ground, phase: bytes, total: object) -> Row:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_close, args=(ground, phase, total, theirs, os.getpid()))
    process.start()
    theirs.close()
    try:
        row: Row = ours.recv()
    except EOFError:
        process.join()
        raise BenchmarkError(
            f"the process that closes a step ended with exit code {process.exitcode}"
        ) from None
    finally:
        process.join()
    return row


def _close(
    ground: Ground, phase: bytes, total: np.ndarray | None, told: Connection, parent: int
) -> None:
    """Close one step in a process of its own, and report its cost."""
    import psutil

    end_with(parent)

    own = psutil.Process()
    with ground.opened() as store:
        held = own.memory_info().rss
        floor, count, size = _floor(store, phase)
        coordinator = Coordinator(store, None, phase)
        deadline = store.present_step(phase).deadline
        before, database = coordinator.step, ground.database_cpu_seconds()
        wall, cpu = time.perf_counter(), time.process_time()
        coordinator.advance(deadline)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        database = ground.database_cpu_seconds() - database
        peak = peak_memory(own)
        state = coordinator.state
        if state.failure or coordinator.step == before:
            raise BenchmarkError(f"'{before}' was not closed: {state.failure}")
        if total is not None and not _is_total(state, total):
            raise BenchmarkError("the total does not match the votes")
        ground.keep(store, phase)
    told.send(
        {
            "answers": count,
            "answers_mb": size / _MEBIBYTE,
            "seconds": wall,
            "cpu_seconds": cpu,
            "database_cpu_seconds": database,
            "floor_seconds": floor,
            "before_mb": held / _MEBIBYTE,
            "peak_mb": peak / _MEBIBYTE,
        }
    )


def _is_total(state: object, total: np.ndarray) -> bool:
    return isinstance(state, LabellingPhase) and np.array_equal(state.label_votes, total)


def _floor(store: PhaseStore, phase: bytes) -> tuple[float, int, int]:
    """Return seconds to read, decode and add up the step's answers, their number and size."""
    began = time.perf_counter()
    count = size = added = 0
    for _, answer in store.answers(phase):
        decode_answer(answer)
        added += int(np.frombuffer(answer, dtype=np.uint8).sum())
        count += 1
        size += len(answer)
    return time.perf_counter() - began, count, size
