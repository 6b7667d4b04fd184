"""The record of one simulated phase of any kind: its JSON form, and its page `report.html`.

The page loads no other files.
"""

from __future__ import annotations

import json
import math
import os
import shlex
import textwrap
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import msgspec
import numpy as np

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.files import replace_file
from earshot_protocol.privacy.accounting import Release
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS, Cost, Unit
from earshot_server.dashboard.spending import (
    VACUOUS_EPSILON,
    by_mechanism,
    dearer_recording,
    is_vacuous,
)
from earshot_server.data_frames import data_frame
from earshot_simulations.adversary.success import Success
from earshot_simulations.engine.course import SimulatedStep
from earshot_simulations.phases.own import OWN
from earshot_simulations.phases.route_options import in_words
from earshot_simulations.populations import Skipped
from earshot_simulations.reporting.words import (
    NOTHING,
    byte_size,
    duration,
    printable,
    real,
    whole,
)
from earshot_simulations.shapes import shapes
from earshot_simulations.versions import digest

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from earshot_simulations.reporting.drawing import Picture

NOISELESS = math.inf
"""ε of a phase without noise, which protects nothing."""
INFINITE = "inf"
"""Infinite ε in the settings of `result.json`, as JSON has no such number."""
UNPROTECTED = "no noise: nothing is protected"
"""Text on the guarantee of a phase without noise."""
DIGEST = "digest"
"""Name of the entry in `result.json` with the digest of all others."""

PHASE_FAILED = "the phase failed: "
"""Beginning of `Run.interrupted` if the phase failed, instead of being interrupted."""

RESULT, REPORT = "result.json", "report.html"
FILES = (RESULT, REPORT)
"""All files that `Run.write` writes."""
_MOST_NOTES = 3
_MOST_ROWS = 200
_MOST_PHONES = 1000

_COSTS = {"ε per recording": Unit.RECORDING, "ε per phone (zero-out)": Unit.PHONE}
_NOT_FIGURES = frozenset({"provenance", DIGEST})

F = TypeVar("F", bound="PhaseFindings")


class PhaseFindings(ABC):
    """The findings of a phase of some kind, and the parts of files and pages of that kind.

    A kind is a frozen dataclass of this type. A run that ended early leaves the fields of later
    steps at their defaults.
    """

    phase: ClassVar[str]
    """Name of the kind, such as "labelling phase"."""
    template: ClassVar[str]
    """Template of the sections of a report that show the findings."""
    command: ClassVar[str] = "earshot simulate"
    """Command that simulates it."""
    unit_note: ClassVar[str] = ""
    """Condition under which the costs of a phone hold, for the caption of their table."""

    @abstractmethod
    def described(self, run: Run[Any]) -> dict[str, object]:
        """Return the content of `result.json`, in order, of types that `plain` converts."""

    @abstractmethod
    def outcome(self, run: Run[Any]) -> str:
        """Return the outcome of a run that did not end early, in one sentence."""

    @abstractmethod
    def figures(self) -> dict[str, str]:
        """Return the most important figures, formatted, by name."""

    @abstractmethod
    def picture(self) -> Picture | None:
        """Return the picture that shows most of what was found; None before there is anything."""

    def __repr__(self) -> str:
        return shapes(type(self).__name__, vars(self))


@dataclass(frozen=True, kw_only=True, eq=False)
class Run(Generic[F]):
    """Everything in `result.json` and `report.html` about one simulated phase.

    Attributes:
        version: Version of Earshot.
        configuration: Settings given to the command, one entry per option.
        provenance: Everything else that determines the result; see `PhaseSettings.provenance`.
        population: Description of the phones' recordings.
        is_known: Whether the encoder was trained on such scenes.
        phones: Number n of phones that took part.
        survivors: Phones that stayed to the end.
        found: Scores and arrays of the result: `CellFindings` by secure sums, `CentroidFindings` on
            the local route, which share what `EnvironmentFindings` has.
        adversary: Success of the corrupted phones; None if there were none.
        privacy: Every release, in each unit.
        costs: Cost of each released private step, in every unit, including a replaced phone.
        together: Cost of these steps together; see `earshot_server.phases.costs`.
        steps: Records of the steps, in order.
        skipped: Recordings that could not be used.
        notes: Sentences that the report must show.
        interrupted: Reason why the run ended early; None if it did not.
        peak_memory_mb: Largest resident memory, in MiB, added up over this process and all that
            ran phones. Memory that a process took before the run counts, too: to measure a run,
            use a new process.
        seconds: Wall-clock time of the whole run, in seconds.
    """

    version: str
    population: str
    phones: int
    survivors: int
    found: F
    configuration: Mapping[str, object] = field(default_factory=dict)
    provenance: Mapping[str, object] = field(default_factory=dict)
    adversary: Success | None = None
    privacy: tuple[Release, ...] = ()
    costs: Mapping[str, Mapping[Unit, Cost]] = field(default_factory=dict)
    together: Mapping[Unit, Cost] = field(default_factory=dict)
    steps: tuple[SimulatedStep, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    is_known: bool = False
    notes: tuple[str, ...] = ()
    interrupted: str | None = None
    peak_memory_mb: float = 0.0
    seconds: float = 0.0

    def __repr__(self) -> str:
        facts = "; ".join(f"{name}: {value}" for name, value in figures(self).items())
        lines = (f"<Run: {self._called()}", headline(self), f"{facts}>")
        return "\n".join(textwrap.fill(line, 88, subsequent_indent="  ") for line in lines)

    def _repr_html_(self) -> str:
        """Return a small table for a notebook."""
        from earshot_simulations.reporting.pages import fragment

        rows = [("outcome", headline(self)), *figures(self).items()]
        return fragment("reporting/fragment.html", caption=self._called(), columns=(), rows=rows)

    def _called(self) -> str:
        seed = self.configuration.get("seed")
        return f"{self.found.phase} over {self.population}, seed {seed}"

    def to_frame(self) -> DataFrame:
        """Return a data frame of one row, which can be concatenated with those of other runs.

        The columns are the single values of `result.json`, settings and figures, by their dotted
        names, such as `configuration.seed`, `ari_test` and `privacy.together.phone.epsilon`. Lists
        and the provenance are omitted.

        Raises:
            MissingExtraError: The package pandas is not installed.
        """
        described = self.found.described(self).items()
        held = {name: value for name, value in described if name not in _NOT_FIGURES}
        single = leaves({name: plain(value, math.inf) for name, value in held.items()})
        return data_frame([{name: each for name, each in single if not isinstance(each, list)}])

    def plot(self, axes: Axes | None = None) -> Figure:
        """Draw what was found, with the outcome as its title and a legend.

        A notebook shows the figure where this is the last line of a cell; a script saves it:
        `run.plot().savefig("run.png")`.

        A phase of environments is drawn in the two directions in which recordings differ most:
        what phones heard in grey, and on it the prototypes with their names and the cells, or the
        kept centroids with their names and their votes. The votes carry noise, so that a centroid
        that few phones voted for may have a negative count. For a run that ended early, the last
        step that it reached is drawn. A labelling phase is drawn as the number of samples by label,
        and a statistics phase as the contacts in each kind of place.

        Args:
            axes: Axes of matplotlib to draw on; by default those of a new figure, which pyplot does
                not know, so that `pyplot.show()` does not show it.

        Returns:
            The figure.
        """
        from earshot_simulations.reporting.figures import drawn

        return drawn(self.found.picture(), headline(self), axes)

    def write(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write `result.json` for programs and `report.html` for people, each whole or not at all.

        The numbers are written first, so they are saved even if rendering the report fails.

        Args:
            folder: Folder, created if it does not exist; other files in it stay as they are.
            overwrite: Whether these two files may be replaced.

        Raises:
            InvalidInputError: The folder holds one of them, and `overwrite` is False; or no folder
                can be made there.
            OSError: The files cannot be written, as where the disk is full.
        """
        folder = Path(folder)
        held = [name for name in FILES if (folder / name).exists()]
        if held and not overwrite:
            raise InvalidInputError(
                f"{folder} already holds {' and '.join(held)}: name another folder, or pass "
                f"overwrite=True to replace {' and '.join(FILES)} there"
            )
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInputError(f"{folder}: no folder can be made there ({error})") from error
        replace_file(folder / RESULT, json.dumps(result(self), indent=2, allow_nan=False) + "\n")
        replace_file(folder / REPORT, render(self))

    @property
    def noiseless(self) -> bool:
        """Whether the phase ran without noise, so that it protects nothing."""
        return self.configuration.get("epsilon") == NOISELESS

    @property
    def stopped(self) -> bool:
        """Whether the run was interrupted, so that its outcome is unknown."""
        return self.interrupted is not None and not self.interrupted.startswith(PHASE_FAILED)

    def by_step(self, value: Callable[[SimulatedStep], float]) -> dict[str, float]:
        """Return one number per step; repetitions of a step are added up."""
        sums: dict[str, float] = {}
        for step in self.steps:
            sums[step.step] = sums.get(step.step, 0) + value(step)
        return sums

    def spent(self) -> dict[str, object]:
        """Return the privacy spent, as in `result.json`."""
        return {
            "releases": msgspec.to_builtins(self.privacy),
            "together": _costs(self.together),
        }

    def left_out(self) -> dict[str, object]:
        """Return the recordings that could not be used, as in `result.json`."""
        return {
            "count": len(self.skipped),
            "reasons": dict(Counter(entry.reason for entry in self.skipped).most_common()),
            "list": [asdict(entry) for entry in self.skipped],
        }


def _costs(by_unit: Mapping[Unit, Cost]) -> dict[str, object]:
    return {
        unit.value: {"epsilon": cost.epsilon, "delta": cost.delta} for unit, cost in by_unit.items()
    }


def headline(run: Run[Any]) -> str:
    """Return the outcome as a sentence."""
    if run.interrupted is not None:
        return f"The run ended early: {run.interrupted}."
    outcome: str = run.found.outcome(run)
    return outcome


def cost_figure(name: str, cost: Cost | None) -> tuple[str, str]:
    """Return a figure's name with the δ at which its ε holds, and this ε."""
    if cost is None:
        return name, NOTHING
    at = "" if cost.epsilon == math.inf else f", at δ = {real(cost.delta)}"
    return name + at, real(cost.epsilon)


def figures(run: Run[Any]) -> dict[str, str]:
    """Return the figures at the head of a report, formatted, by name."""
    costs = run.together
    return {
        "phones stayed": f"{whole(run.survivors)} of {whole(run.phones)}",
        **run.found.figures(),
        **dict(
            cost_figure(name, costs[unit] if run.privacy else None) for name, unit in _COSTS.items()
        ),
        "wall-clock time": duration(run.seconds),
        "peak memory": f"{whole(run.peak_memory_mb)} MB",
    }


def result(run: Run[Any]) -> dict[str, Any]:
    """Return the run as in `result.json`: plain Python types, None for numbers that are not finite.

    An infinite setting is "inf", as on the command line. Counts that a run never reached are None,
    too. A result with provenance, which can be repeated, has a digest.

    Args:
        run: Run to describe.
    """
    figures = {
        name: plain(value, INFINITE if name == "configuration" else None)
        for name, value in run.found.described(run).items()
    }
    return figures | {DIGEST: digest(figures)} if "provenance" in figures else figures


def leaves(table: Mapping[str, Any], place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every entry of nested tables that is not a table, by its dotted name."""
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from leaves(value, f"{place}{name}.")
        else:
            yield f"{place}{name}", value


def plain(value: object, infinite: object = None) -> object:
    """Convert a value to the types that JSON has.

    Args:
        value: Value to convert.
        infinite: Replacement for ∞; other numbers that are not finite become None.
    """
    match value:
        case None | bool() | int():
            return value
        case str():
            # A file name may hold bytes that are not UTF-8; JSON and HTML cannot.
            return str(value).encode(errors="replace").decode()
        case float():
            if value == math.inf:
                return infinite
            return float(value) if math.isfinite(value) else None
        case np.generic() | np.ndarray():
            return plain(value.tolist(), infinite)
        case msgspec.Struct():
            return plain({name: getattr(value, name) for name in value.__struct_fields__}, infinite)
        case Mapping():
            return {str(plain(str(key))): plain(entry, infinite) for key, entry in value.items()}
        case list() | tuple():
            return [plain(entry, infinite) for entry in value]
        case _:
            return plain(str(value))


def render(run: Run[Any]) -> str:
    """Render the whole report as one HTML document.

    Args:
        run: Run that finished or ended early; the report mentions missing parts.
    """
    from earshot_simulations.reporting import charts
    from earshot_simulations.reporting.pages import page

    asked = [step for step in run.steps if step.asked]
    reasons = Counter(entry.reason for entry in run.skipped).most_common(_MOST_ROWS)
    costs = run.together.items()
    return page(
        "phases/report.html",
        title=f"{run.survivors} of {run.phones} phones",
        kicker=f"Earshot · a simulated {run.found.phase} · {run.population}",
        headline=headline(run),
        version=run.version,
        warnings=run.notes[:_MOST_NOTES],
        figures=figures(run),
        run=run,
        charts=charts,
        spending=_spending(run),
        unprotected=UNPROTECTED,
        dearer=dearer_recording(run.together),
        vacuous={unit: cost for unit, cost in costs if unit in LEDGER_UNITS and is_vacuous(cost)},
        vacuous_epsilon=VACUOUS_EPSILON,
        asked=[
            [step.step, *map(whole, (step.asked, step.answered, len(step.dropped), step.refused))]
            for step in asked
        ],
        lost=sum(len(step.dropped) for step in asked),
        refused=sum(step.refused for step in asked),
        helper_bytes=sum(step.helper_bytes for step in asked),
        most_phones=_MOST_PHONES,
        amounts=_amounts(run),
        reasons=[[reason, whole(count)] for reason, count in reasons],
        skipped=[
            [entry.recording, entry.reason, entry.detail] for entry in run.skipped[:_MOST_ROWS]
        ],
        own=run.provenance.get(OWN),
        command=command_line(run.configuration, run.found.command),
    )


def command_line(configuration: Mapping[str, object], command: str = "earshot simulate") -> str:
    """Return the command that repeats the run, quoted for a shell, one option per line."""
    parts = [command]
    for option, value in in_words(configuration):
        words = [option] if value is None else [option, value]
        parts.append(shlex.join(map(printable, words)))
    return " \\\n  ".join(parts)


def _spending(run: Run[Any]) -> list[list[str]]:
    """Return the costs of every step, then those of all together; none without a release."""
    if not run.privacy:
        return []
    rows = [
        [step, *_cost_cells({**run.costs.get(step, {}), **by_unit}), mechanism]
        for (step, mechanism), by_unit in by_mechanism(run.privacy).items()
    ]
    return [*rows, ["Together", *_cost_cells(run.together), ""]]


def _cost_cells(costs: Mapping[Unit, Cost]) -> list[str]:
    cells = [
        real(number) for unit in LEDGER_UNITS for number in (costs[unit].epsilon, costs[unit].delta)
    ]
    replaced = costs.get(Unit.REPLACED_PHONE)
    return [*cells, NOTHING if replaced is None else real(replaced.epsilon)]


def _amounts(run: Run[Any]) -> list[list[str]]:
    """Return the time and traffic of every step, then their totals; none before the first."""
    if not run.steps:
        return []
    amounts = [
        (
            step.per_phone(step.bytes_up),
            step.per_phone(step.bytes_down),
            step.per_phone(step.phone_cpu_seconds),
            step.server_cpu_seconds,
            step.seconds,
        )
        for step in run.steps
    ]
    rows = [
        [step.step, *_amount_cells(row, bool(step.asked))]
        for step, row in zip(run.steps, amounts, strict=True)
    ]
    totals = [sum(column) for column in zip(*amounts, strict=True)]
    return [*rows, ["Total", *_amount_cells(totals, True)]]


def _amount_cells(amounts: Sequence[float], by_phones: bool) -> list[str]:
    up, down, *durations = amounts
    cells = [byte_size(up), byte_size(down), *map(duration, durations)]
    return cells if by_phones else [NOTHING] * 3 + cells[3:]
