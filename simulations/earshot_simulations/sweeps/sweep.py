"""Many phases, in any number of processes, each saved as it finishes."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import msgspec

from earshot_protocol import distribution
from earshot_protocol.progress import Progress, silent
from earshot_protocol.shipped_encoders import SHIPPED_ENCODERS
from earshot_simulations.engine.processes import check_processes
from earshot_simulations.phases.own import OWN
from earshot_simulations.phases.settings import BLOBS, SOUNDSCAPES, WHERE, EngineChoice, Settings
from earshot_simulations.phases.simulation import HEARD
from earshot_simulations.populations.hearing import Hearings, hearing_once
from earshot_simulations.populations.vectors import is_vectors
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
        own: Things of the caller's own that it uses: the class and the key of each.
    """

    name: str
    run: Callable[[Settings], Figures]
    own: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)


@dataclass(frozen=True)
class Phase:
    """One phase to measure, identified by all that its figures depend on.

    Attributes:
        measure: Measure of the phase.
        settings: Settings of the phase.
    """

    measure: Measure
    settings: Settings

    @property
    def configuration(self) -> Mapping[str, object]:
        """All settings that the figures depend on, with digests instead of paths."""
        settings = msgspec.to_builtins(asdict(self.settings))
        for where in WHERE:
            del settings[where]
        if is_vectors(self.settings.data):
            settings["data"] = _file_digest(Path(self.settings.data))
        elif self.settings.data not in (BLOBS, SOUNDSCAPES):
            settings["data"] = _folder_digest(Path(self.settings.data))
        if self.settings.encoder not in (None, *SHIPPED_ENCODERS):
            settings["encoder"] = _file_digest(Path(self.settings.encoder or ""))
        told = {"version": distribution.version(), "measure": self.measure.name}
        own = {OWN: self.measure.own} if self.measure.own else {}
        return {**told, "settings": settings, **own}

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
    """Measure every phase that the file does not hold, and append it when it is done.

    A phase that several arms share runs once, and phases of one crowd share embedded sound across
    processes. An interruption loses the running phases, one per process; the next call continues.

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

    One crowd per process is ahead: a process embeds the next crowd while others finish the last
    one, and recordings are used while they are still cached.
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
