"""Many phases, in any number of processes, each kept as it finishes."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import msgspec

from earshot_protocol import distribution
from earshot_protocol.progress import Progress, silent
from earshot_protocol.shipped_encoders import SHIPPED_ENCODERS
from earshot_simulations.engine.processes import check_processes
from earshot_simulations.phases.settings import BLOBS, SOUNDSCAPES, WHERE, EngineChoice, Settings
from earshot_simulations.phases.simulation import HEARD
from earshot_simulations.populations.hearing import Hearings, hearing_once
from earshot_simulations.sweeps.rows import Figures, opened
from earshot_simulations.workers import in_parallel

__all__ = ["Arm", "Measure", "Phase", "measured"]

PHASES = "phases"
"""Name of the progress."""


@dataclass(frozen=True)
class Measure:
    """A measurement of one phase, given its settings.

    Attributes:
        name: Name in the rows; two measures of the same settings differ in it.
        run: Function of a module, so that other processes can call it.
    """

    name: str
    run: Callable[[Settings], Figures]


@dataclass(frozen=True)
class Phase:
    """One phase to be measured, identified by all that its figures depend on.

    Attributes:
        measure: Measure of the phase.
        settings: Settings of the phase.
    """

    measure: Measure
    settings: Settings

    @property
    def configuration(self) -> Mapping[str, object]:
        """Everything that the figures depend on, with digests in place of paths."""
        settings = msgspec.to_builtins(asdict(self.settings))
        for where in WHERE:
            del settings[where]
        if self.settings.data not in (BLOBS, SOUNDSCAPES):
            settings["data"] = _folder_digest(Path(self.settings.data))
        if self.settings.encoder not in (None, *SHIPPED_ENCODERS):
            settings["encoder"] = _file_digest(Path(self.settings.encoder or ""))
        version = distribution.version()
        return {"version": version, "measure": self.measure.name, "settings": settings}

    @functools.cached_property
    def key(self) -> str:
        """Key of the phase's row."""
        canonical = json.dumps(self.configuration, sort_keys=True)
        return hashlib.sha256(canonical.encode()).hexdigest()


@dataclass(frozen=True)
class Arm:
    """One configuration under several seeds.

    Attributes:
        labels: Distinguishing values, as columns of a table.
        measure: Measure of each phase.
        phases: Settings of the phases, one per seed.
    """

    labels: Mapping[str, str | float]
    measure: Measure
    phases: tuple[Settings, ...]

    def measurements(self) -> list[Phase]:
        """Return the phases to measure, one per seed."""
        return [Phase(self.measure, settings) for settings in self.phases]


def measured(
    arms: Sequence[Arm],
    file: str | os.PathLike[str],
    processes: int = 1,
    progress: Progress = silent,
) -> list[tuple[Figures, ...]]:
    """Measure every phase that the file does not hold, and keep it as soon as it is done.

    A phase that several arms share is done once, and so is hearing for phases of one crowd, in
    whichever process they run. An interruption loses the phases that are under way, one per
    process; the next call does those and continues.

    Args:
        arms: Arms to measure.
        file: File of finished phases; see `Rows`.
        processes: Number of phases at a time. Each runs in one process, whatever its settings say:
            the result does not depend on it.
        progress: Callback that receives the number of finished phases.

    Returns:
        For each arm the figures of its phases, in their order.

    Raises:
        InvalidParametersError: Some setting is of the wrong type, or the number of processes is out
            of range; raised before any work.
        InvalidInputError: Another run is writing the file, or it holds something else.
    """
    asked = [arm.measurements() for arm in arms]
    for phase in itertools.chain.from_iterable(asked):
        phase.settings.check_types()
    processes = check_processes("processes", processes)
    phases = {phase.key: phase for each in asked for phase in each}
    with opened(Path(file)) as rows, hearing_once(2 * processes) as kept:
        due = [phase for key, phase in phases.items() if key not in rows]
        done = len(phases) - len(due)
        progress(PHASES, done, len(phases))
        tasks = ((phase, kept) for phase in _by_crowd(due, processes))
        for key, figures in in_parallel(_figures, tasks, processes, ordered=False):
            rows.append(key, phases[key].configuration, figures)
            done += 1
            progress(PHASES, done, len(phases))
        return [tuple(rows[phase.key] for phase in each) for each in asked]


def _by_crowd(due: Sequence[Phase], processes: int) -> Iterator[Phase]:
    """Yield the phases of one crowd together, with one phase of each of the next crowds ahead.

    As many are ahead as there are processes: a process hears the next crowd while others go through
    the last one, and recordings are asked for while they are still kept.
    """
    crowds: dict[tuple[object, ...], list[Phase]] = {}
    for phase in sorted(due, key=lambda phase: (phase.settings.phones, phase.settings.seed)):
        heard = tuple(getattr(phase.settings, name) for name in HEARD)
        crowds.setdefault(heard, []).append(phase)
    phases = list(crowds.values())
    for place in range(1 - processes, len(phases)):
        yield from (each[0] for each in phases[place + processes - 1 :][:1])
        yield from phases[place][1:] if place >= 0 else ()


def _figures(phase: Phase, kept: Hearings) -> tuple[str, Figures]:
    settings = replace(phase.settings, engine=EngineChoice.LOCAL, address=None, jobs=1)
    with kept.used():
        return phase.key, phase.measure.run(settings)


@functools.lru_cache
def _folder_digest(folder: Path) -> str:
    """Return the digest of the names and sizes of all files in a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    listed = [(path.relative_to(folder).as_posix(), path.stat().st_size) for path in files]
    return _digest(json.dumps(listed).encode())


@functools.lru_cache
def _file_digest(file: Path) -> str:
    return _digest(file.read_bytes())


def _digest(content: bytes) -> str:
    return "sha256 " + hashlib.sha256(content).hexdigest()
