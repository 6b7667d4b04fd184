"""The output of `earshot probe`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from earshot_models.recipe import PROJECTIONS
from earshot_simulations.probing.cost import EncoderCost
from earshot_simulations.probing.degradations import CONDITIONS
from earshot_simulations.probing.figures import differences, sound_figures
from earshot_simulations.probing.measures import interval
from earshot_simulations.probing.probe import CLEAN, MEASURES, PLACES, Probe
from earshot_simulations.probing.seconds import below_sentence

_MOST_FILES = 10
_NAMES, _COLUMN = 22, 15


def sound_lines(probe: Probe) -> Iterator[str]:
    """Yield lines on the sound, and on files and clips that were left out."""
    figures = sound_figures(probe)
    bad, places = figures["unreadable"], figures["compared_in_places"]
    yield (
        f"{figures['dataset']}: {figures['clips']} clips, {figures['seconds']} seconds, "
        f"{figures['classes']} classes; held out in turn: {'  '.join(figures['held_out'])}"
    )
    yield (
        f"places: {places['clips']} clips; left out {places['too_short']} too short for two "
        f"seconds, {places['half_silent']} silent in one half"
    )
    unheard = figures["unheard"]
    lost = f", and with them all of {', '.join(unheard['classes'])}" if unheard["classes"] else ""
    yield from _left_out("unreadable files", bad)
    yield from _left_out(f"files that are not heard{lost}", unheard)
    if not probe.seconds.labels:
        yield "there are fewer than two labels: kinds of sound are not measured"
    sides = zip(probe.seconds.names, probe.places, strict=True)
    bare = [name for name, place in sides if place is None]
    if bare:
        yield f"places are not measured: no two clips of {', '.join(bare)} can be compared"


def _left_out(what: str, files: Mapping[str, Any]) -> Iterator[str]:
    if files["count"]:
        yield f"left out: {files['count']} {what}"
        yield from (f"  {file}" for file in files["files"][:_MOST_FILES])
        if files["count"] > _MOST_FILES:
            yield f"  and {files['count'] - _MOST_FILES} more, in --json"


def rate_lines(labels: Sequence[str], probes: Sequence[Probe]) -> Iterator[str]:
    """Yield a line for each encoder with a higher rate than some files."""
    for label, probe in zip(labels, probes, strict=True):
        if probe.seconds.below:
            yield below_sentence(probe.seconds, label)


def measure_lines(labels: Sequence[str], probes: Sequence[Probe]) -> Iterator[str]:
    """Yield every measure, a column for each encoder; for a single encoder also each fold."""
    values = [probe.values() for probe in probes]
    chance = probes[0].chance()

    def cell(column: int, name: str) -> str:
        if name not in values[column]:
            return "–"
        mean, wide = interval(values[column][name])
        return f"{mean:.3f} ± {wide:.3f}"

    def beside(name: str) -> str:
        folds = "  ".join(f"{value:.3f}" for value in values[0][name]) if len(probes) == 1 else ""
        by_chance = f"chance {chance[name]:.3f}" if name in chance else ""
        return "".join(f"   {part}" for part in (folds, by_chance) if part)

    yield "mean ± half of its 95 % interval over the held-out sides" + (
        ", and each" if len(probes) == 1 else ""
    )
    yield from _lines(labels, {name for each in values for name in each}, cell, beside)


def difference_lines(labels: Sequence[str], probes: Sequence[Probe]) -> Iterator[str]:
    """Yield the differences of the other encoders from the first, paired by fold."""
    first = probes[0].values()
    found = [differences(probe.values(), first) for probe in probes[1:]]
    names = {name for each in found for name in each}

    def cell(column: int, name: str) -> str:
        if name not in found[column]:
            return "–  "
        of = found[column][name]
        return f"{of.mean:+.3f} ± {of.wide:.3f}{' *' if of.clear else '  '}"

    yield f"difference to {labels[0]}, paired by held-out side; * its interval excludes 0"
    yield from _lines(labels[1:], names, cell, lambda name: "")
    count = sum(map(len, found))
    yield ""
    yield (
        f"of {count} differences about {count * 0.05:.0f} would have a * even if encoders were "
        "equal; all are measured on the same sound"
    )


def cost_lines(labels: Sequence[str], costs: Sequence[EncoderCost | None]) -> Iterator[str]:
    """Yield the cost of each encoder file to a phone."""
    for label, cost in zip(labels, costs, strict=True):
        if cost is not None:
            yield (
                f"cost of {label}: {cost.bytes} bytes, {cost.cpu_ms:.2f} ms of CPU per second "
                f"({cost.spectrum_ms:.2f} of it for the spectrum), {cost.resident_mb:.0f} MB"
            )


def _lines(
    labels: Sequence[str],
    names: set[str],
    cell: Callable[[int, str], str],
    beside: Callable[[str], str],
) -> Iterator[str]:
    wide = [max(_COLUMN, len(label)) + 3 for label in labels]
    yield " " * (_NAMES + 2) + "".join(
        f"{label:>{width}}" for label, width in zip(labels, wide, strict=True)
    )
    for section in _sections(names):
        yield section.title
        for name, title in section.rows.items():
            cells = (f"{cell(place, name):>{width}}" for place, width in enumerate(wide))
            yield f"  {title:<{_NAMES}}{''.join(cells)}{beside(name)}".rstrip()


@dataclass(frozen=True)
class _Section:
    """Measures that belong together.

    Attributes:
        title: Title above the measures.
        rows: Title of each measure, by its name in `Probe.values`.
    """

    title: str
    rows: dict[str, str]


def _sections(names: Collection[str]) -> list[_Section]:
    """Return all sections that show some of these measures."""
    kept = []
    for section in _SECTIONS:
        rows = {name: title for name, title in section.rows.items() if name in names}
        if rows:
            kept.append(_Section(section.title, rows))
    return kept


def _heard(measure: str) -> dict[str, str]:
    conditions = {f"robustness.{each.name}.{measure}": each.title for each in CONDITIONS}
    return {CLEAN[measure]: "clean"} | conditions


_SECTIONS = (
    _Section("Kinds of sound", {name: name.replace("_", " ") for name in MEASURES}),
    _Section(
        "Kinds, k-means ARI after projection",
        {
            f"{name}_by_dimensions.{dimensions}": f"{name.replace('_', ' ')}, d = {dimensions}"
            for name in ("ari", "ari_twice")
            for dimensions in PROJECTIONS
        },
    ),
    _Section(
        "The same place again",
        {f"places.{name}": "ari, k = places" if name == "ari" else f"by {name}" for name in PLACES},
    ),
    _Section("Kinds when heard worse, seconds", _heard("second_accuracy")),
    _Section("The same place when heard worse, halves", _heard("same_place")),
)
