"""Whole phases of growing crowds: the cost to a phone and to the server, and how both grow.

Every phase is simulated with all its phones, in a separate process, so that its memory can be
measured. A small unmeasured phase precedes it, to load and compile everything that a process loads
and compiles once. Phases are saved as they finish.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path
from typing import Any

from earshot_models.commands.progress import shown
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.secure_sum.parameters import choose
from earshot_simulations.benchmarks.failure import BenchmarkError
from earshot_simulations.benchmarks.growth import Growth, extrapolation_table, growth
from earshot_simulations.benchmarks.machine import machine
from earshot_simulations.phases.environments import EnvironmentFindings
from earshot_simulations.phases.run import Run
from earshot_simulations.phases.secure_sum import CellFindings
from earshot_simulations.phases.settings import (
    EngineChoice,
    PolicyChoice,
    Settings,
    SummationChoice,
)
from earshot_simulations.phases.simulation import simulate
from earshot_simulations.sweeps.rows import Figures, opened
from earshot_simulations.sweeps.sweep import Measure, Phase
from earshot_simulations.temporary import TemporaryFolder
from earshot_simulations.versions import check_version
from earshot_simulations.workers import spawned

PER_PHONE: Mapping[str, str] = {
    "phone_cpu_ms": "a phone's CPU",
    "phone_bytes_up": "what it sends",
    "phone_bytes_down": "what it receives",
}
"""Figures of a row whose growth matters to a phone, with their names for readers."""
_EXPLAINING = {"neighbours": "k alone", "centroids": "the number of centroids alone"}
_MEASURE = "bench phase"
_NATION = 1_000_000
_FIRST_PHONES = 200


def benchmark(
    each: Sequence[Settings],
    kept: Path | None = None,
    measure: Callable[[Settings], Figures] | None = None,
) -> list[Figures]:
    """Simulate one phase after the other, each in a separate process, and measure them.

    The measured process shows its progress on standard error.

    Args:
        each: Settings of the phases, preferably the smallest first.
        kept: File of finished phases, JSON lines: those in it are not simulated again, and new
            ones are added as they finish. With None, nothing is saved.
        measure: Function that measures one phase; replaced in tests.

    Returns:
        All phases in the file; without a file, the given ones. See `row`.

    Raises:
        InvalidParametersError: A phase cannot be simulated; raised before any work.
        OtherVersionError: The file holds phases of another version.
        BenchmarkError: A phase failed or its process was killed; earlier ones are saved.
    """
    if not each:
        raise InvalidParametersError("no phones: give at least one number of phones")
    for settings in each:
        settings.check()
    run = measure or _in_a_process_of_its_own
    # A sweep's key omits the engine, which matters to a measurement.
    phases = [Phase(Measure(f"{_MEASURE}, {settings.engine}", run), settings) for settings in each]
    with TemporaryFolder("bench") as folder:
        file = kept or folder.path / "phases.jsonl"
        with opened(file) as rows:
            for version in sorted(set(rows.versions.values())):
                check_version(file, version)
            for phase in phases:
                if phase.key not in rows:
                    rows.append(phase.key, phase.configuration, run(phase.settings))
            return [rows[key] for key in rows.versions]


def row(settings: Settings, run: Run[EnvironmentFindings]) -> Figures:
    """Return the figures of one phase by name; the names state the units, `_mb` is MiB.

    `phone_…` is the cost of one phone that stays to the end: for every step, the sum over phones
    divided by the number that answered. `neighbours` is k, or None without cryptography.

    Raises:
        BenchmarkError: The phase failed.
        KeyboardInterrupt: The phase was interrupted.
    """
    if run.stopped:
        raise KeyboardInterrupt
    if run.interrupted is not None:
        raise BenchmarkError(f"the phase of {settings.phones} phones ended: {run.interrupted}")
    found = run.found.cells if isinstance(run.found, CellFindings) else run.found.global_centroids
    real = settings.summation is SummationChoice.REAL
    return {
        "discovery": settings.discovery.value,
        "summation": settings.summation.value,
        "engine": settings.engine.value,
        "phones": settings.phones,
        "dropout": settings.dropout,
        "corrupted": settings.corrupted,
        "survivors": run.survivors,
        "neighbours": _neighbours(settings) if real else None,
        "centroids": None if found is None else len(found),
        "seconds": run.seconds,
        "phones_cpu_seconds": sum(step.phone_cpu_seconds for step in run.steps),
        "server_cpu_seconds": sum(step.server_cpu_seconds for step in run.steps),
        "peak_memory_mb": run.peak_memory_mb,
        "phone_cpu_ms": 1e3 * sum(step.per_phone(step.phone_cpu_seconds) for step in run.steps),
        "phone_bytes_up": sum(step.per_phone(step.bytes_up) for step in run.steps),
        "phone_bytes_down": sum(step.per_phone(step.bytes_down) for step in run.steps),
        "ari_test": run.found.ari_test,
        "processes": settings.jobs,
        "machine": machine(),
    }


def _neighbours(settings: Settings) -> int:
    """Return the number of neighbours of a phone in every sum of the phase."""
    return choose(settings.phones, (1,), 1, settings.dropout, settings.corrupted).degree


def _in_a_process_of_its_own(settings: Settings) -> Figures:
    with spawned(1) as pool:
        try:
            return pool.submit(_measured, settings).result()
        except BrokenProcessPool:
            raise BenchmarkError(
                f"the process with {settings.phones} phones was killed, as happens on a machine "
                "with too little memory: give fewer phones"
            ) from None


def _measured(settings: Settings) -> Figures:
    few = min(settings.phones, _FIRST_PHONES)
    simulate(replace(settings, phones=few, policy=PolicyChoice.ANYTHING))
    with shown() as progress:
        run = simulate(settings, progress)
    return row(settings, run)


def series(rows: Sequence[Figures]) -> dict[str, list[Figures]]:
    """Group rows by discovery, sums and engine, each group sorted by the number of phones."""
    found: dict[str, list[Figures]] = {}
    for each in sorted(rows, key=lambda each: _value(each["phones"])):
        name = f"{each['discovery']}, {each['summation']} sums"
        if each["engine"] != EngineChoice.LOCAL:
            name += f", {each['engine']}"
        found.setdefault(name, []).append(each)
    return dict(sorted(found.items()))


def growths(rows: Sequence[Figures]) -> dict[str, Growth]:
    """Return the growth of a phone's figures, k and the number of centroids; empty for one size."""
    if len({each["phones"] for each in rows}) < 2:
        return {}
    phones = _column(rows, "phones")
    return {
        name: growth(phones, _column(rows, name))
        for name in (*PER_PHONE, *_EXPLAINING)
        if all(_number(each[name]) for each in rows)
    }


def statements(rows: Sequence[Figures]) -> list[str]:
    """Return sentences on the growths of a series, and on their uncertainty."""
    found = growths(rows)
    if not found:
        return ["one size only: no growth can be measured"]
    first, last = rows[0], rows[-1]
    said = [f"{what}: {found[name]}" for name, what in PER_PHONE.items() if name in found]
    said += [
        f"what {what} would explain ({first[name]} → {last[name]}): {found[name]}"
        for name, what in _EXPLAINING.items()
        if name in found
    ]
    count = len(rows)
    interval = (
        "no interval, as two sizes always lie on a line"
        if count == 2
        else f"95 % intervals by Student's t with {count - 2} degree{'s' * (count > 3)} of freedom"
    )
    sizes = f"from {first['phones']:,} to {last['phones']:,} phones"
    return [*said, f"{sizes}: {count} sizes, one run each; {interval}"]


def page(rows: Sequence[Figures]) -> str:
    """Format rows as Markdown: a table, the growth of a phone's figures, and an extrapolation."""
    every = series(rows)
    blocks = [table([each for found in every.values() for each in found])]
    for name, found in every.items():
        points = [f"- {sentence}" for sentence in statements(found)]
        blocks += [f"How a phone's figures grow, {name}:", "\n".join(points)]
    real = [found[-1] for found in every.values() if found[-1]["neighbours"]]
    if real:
        blocks.append(extrapolation_table(real, _NATION))
    return "\n\n".join(blocks)


def table(rows: Sequence[Figures]) -> str:
    """Format rows in Markdown, with units, followed by the machines of the measurements."""
    columns: Mapping[str, Callable[[Figures], str]] = {
        "discovery": lambda each: str(each["discovery"]),
        "sums": lambda each: str(each["summation"]),
        "engine": lambda each: str(each["engine"]),
        "phones": lambda each: f"{each['phones']:,}",
        "k": lambda each: "" if each["neighbours"] is None else str(each["neighbours"]),
        "seconds": lambda each: f"{each['seconds']:,.0f}",
        "CPU s, phones": lambda each: f"{each['phones_cpu_seconds']:,.0f}",
        "CPU s, server": lambda each: f"{each['server_cpu_seconds']:,.0f}",
        "peak memory, GB": lambda each: f"{_value(each['peak_memory_mb']) * 2**20 / 1e9:.2f}",
        "a phone's CPU, ms": lambda each: f"{each['phone_cpu_ms']:.1f}",
        "a phone's kB up": lambda each: f"{_value(each['phone_bytes_up']) / 1e3:.1f}",
        "a phone's kB down": lambda each: f"{_value(each['phone_bytes_down']) / 1e3:.1f}",
    }
    left = {"discovery", "sums", "engine"}
    rule = "|".join("---" if name in left else "---:" for name in columns)
    lines = [f"| {' | '.join(columns)} |", f"|{rule}|"]
    lines += [f"| {' | '.join(cell(each) for cell in columns.values())} |" for each in rows]
    places = sorted({f"{each['machine']}; {_processes(each['processes'])}" for each in rows})
    return "\n".join([*lines, "", *places])


def _processes(count: Any) -> str:
    return f"{count} process{'es' if count > 1 else ''}"


def _column(rows: Sequence[Figures], name: str) -> list[float]:
    return [_value(each[name]) for each in rows]


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and value > 0


def _value(value: Any) -> float:
    return float(value)
