"""Many phases, in as many processes as one wants, each kept as it finishes."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import msgspec

from earshot_models.commands.progress import Progress
from earshot_protocol import distribution
from earshot_protocol.shipped_encoders import SHIPPED_ENCODERS
from earshot_simulations.engine.quiet import let_cancelled_jobs_go
from earshot_simulations.learning.differences import WHERE
from earshot_simulations.learning.settings import BLOBS, SOUNDSCAPES, Engine, Settings
from earshot_simulations.learning.simulation import HEARD
from earshot_simulations.populations.hearing import Kept, hearing_once
from earshot_simulations.sweeps.rows import Figures, opened

PHASES = "phases"
"""What the progress is called."""


@dataclass(frozen=True)
class Measure:
    """What is done with the settings of one phase.

    Attributes:
        name: stands in the rows; of two measures of the same settings each has its own.
        run: a function of a module, so that other processes can call it.
    """

    name: str
    run: Callable[[Settings], Figures]


@dataclass(frozen=True)
class Phase:
    """One phase to be measured, known by all that its figures depend on."""

    measure: Measure
    settings: Settings

    @property
    def configuration(self) -> Mapping[str, object]:
        """All that the figures depend on; sound by what is in the files, not by where they lie."""
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
        """What its row is called."""
        canonical = json.dumps(self.configuration, sort_keys=True)
        return hashlib.sha256(canonical.encode()).hexdigest()


@dataclass(frozen=True)
class Arm:
    """One configuration under several seeds.

    Attributes:
        labels: what distinguishes it, as columns of a table.
        measure: of each phase.
        phases: their settings, one per seed.
    """

    labels: Mapping[str, str | float]
    measure: Measure
    phases: tuple[Settings, ...]

    def measurements(self) -> list[Phase]:
        """What is measured, one per seed."""
        return [Phase(self.measure, settings) for settings in self.phases]


def measured(
    arms: Sequence[Arm],
    file: Path,
    processes: int = 1,
    progress: Progress = lambda what, done, total, line=None: None,
) -> list[tuple[Figures, ...]]:
    """Do every phase that the file does not hold, and keep it as soon as it is done.

    A phase that several arms share is done once, and so is hearing for phases of one crowd, in
    whichever process they run. What is interrupted loses the phases that are under way, one per
    process; the next call does those and goes on.

    Args:
        arms: what to measure.
        file: holds what is done; see `Rows`.
        processes: phases at a time. Each runs in one process, whatever its settings say: the
            result does not depend on it.
        progress: told how many phases are done.

    Returns:
        For each arm the figures of its phases, in their order.

    Raises:
        InvalidInputError: another run is writing the file, or it holds something else.
    """
    from joblib import Parallel, delayed

    let_cancelled_jobs_go()
    asked = [arm.measurements() for arm in arms]
    phases = {phase.key: phase for each in asked for phase in each}
    with opened(file) as rows, hearing_once(2 * processes) as kept:
        due = [phase for key, phase in phases.items() if key not in rows]
        done = len(phases) - len(due)
        progress(PHASES, done, len(phases))
        parallel = Parallel(n_jobs=processes, return_as="generator_unordered", batch_size=1)
        tasks = (delayed(_figures)(phase, kept) for phase in _by_crowd(due, processes))
        for key, figures in parallel(tasks):
            rows.append(key, phases[key].configuration, figures)
            done += 1
            progress(PHASES, done, len(phases))
        return [tuple(rows[phase.key] for phase in each) for each in asked]


def _by_crowd(due: Sequence[Phase], processes: int) -> Iterator[Phase]:
    """Those of one crowd together, but one of each further crowd ahead, as many as processes.

    So a process hears the next crowd while others go through the last one, and what phones have
    heard is asked for while it is still kept.
    """
    crowds: dict[tuple[object, ...], list[Phase]] = {}
    for phase in sorted(due, key=lambda phase: (phase.settings.phones, phase.settings.seed)):
        heard = tuple(getattr(phase.settings, name) for name in HEARD)
        crowds.setdefault(heard, []).append(phase)
    phases = list(crowds.values())
    for place in range(1 - processes, len(phases)):
        yield from (each[0] for each in phases[place + processes - 1 :][:1])
        yield from phases[place][1:] if place >= 0 else ()


def _figures(phase: Phase, kept: Kept) -> tuple[str, Figures]:
    settings = replace(phase.settings, engine=Engine.LOCAL, address=None, jobs=1)
    with kept.used():
        return phase.key, phase.measure.run(settings)


@functools.lru_cache
def _folder_digest(folder: Path) -> str:
    """Of the names and sizes of all files in it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    listed = [(path.relative_to(folder).as_posix(), path.stat().st_size) for path in files]
    return _digest(json.dumps(listed).encode())


@functools.lru_cache
def _file_digest(file: Path) -> str:
    return _digest(file.read_bytes())


def _digest(content: bytes) -> str:
    return "sha256 " + hashlib.sha256(content).hexdigest()
