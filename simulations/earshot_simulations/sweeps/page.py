"""The page `sweep.html`: small multiples of every figure against every setting that varied."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

from earshot_protocol import distribution
from earshot_server.accounting.accountant import composed_total
from earshot_simulations.phases.route_options import ROUTE, of_others
from earshot_simulations.phases.run import UNPROTECTED
from earshot_simulations.reporting import drawing
from earshot_simulations.reporting.drawing import MUTED, PALETTE, Picture, short
from earshot_simulations.reporting.pages import page
from earshot_simulations.reporting.words import NOTHING, counted, real
from earshot_simulations.sweeps.estimate import Estimate
from earshot_simulations.sweeps.phase import EPSILONS
from earshot_simulations.sweeps.table import SweepTable, over_seeds

METRICS: Mapping[str, str] = {
    "ari_test": "clustering (ARI), held out",
    "ari_train": "clustering (ARI), heard",
    "label_accuracy": "right name, held out",
    "clear_label_accuracy": "right name, clear of the noise",
    "centroids": "centroids with a name or not",
    "epsilon_recording": "ε per recording",
    "epsilon_phone": "ε per phone",
}
"""Figures of a phase that are drawn, with their names for readers."""

_COUNTED = "centroids"
"""Name of a figure that counts centroids on one route, and cells on the other."""
_MOST_LINES = 6
"""Most lines of a picture; more combinations of other settings are averaged."""
_ASIDE = 0.012
"""Distance between lines at the same value, as a fraction of the axis."""
_BEYOND = 0.15
"""Distance of an infinite value from the largest finite one, as a fraction of the axis."""
_MOST_ROWS = 200
_INTERVALS = (
    "Those of shares and of ARI keep to the values that these can take (Student's t on the logit); "
    "those of other figures are Student's t. With three seeds an interval says little."
)
_LOGARITHMIC = 10
"""Ratio of the largest to the smallest value from which an axis is logarithmic."""


@dataclass(frozen=True)
class PictureLine:
    """One line of a picture.

    Attributes:
        name: Settings that the points share; empty for the only line.
        points: Values of the setting, in order, each with a figure's mean over seeds.
    """

    name: str
    points: tuple[tuple[Any, Estimate], ...]


class _Multiples(NamedTuple):
    """Figures against one setting, each as a picture."""

    title: str
    words: str
    pictures: Mapping[str, Picture | None]


def render(results: SweepTable) -> str:
    """Render the whole page as one HTML document."""
    plan, failed = results.plan, results.failures
    shape = f"{counted(len(plan.arms), 'point')} × {counted(len(plan.seeds), 'seed')}"
    warning = f"{counted(failed, 'run')} failed: their scores count as 0, their names as wrong."
    drawn = [name for name in METRICS if name in results.metrics]
    varied = list(map(_spelled, plan.varied))
    return page(
        "sweeps/page.html",
        title=f"a sweep of {counted(plan.runs, 'run')}",
        kicker="Earshot · a sweep of simulated phases",
        headline=f"{counted(plan.runs, 'run')}: {shape}"
        + (f", over {', '.join(varied)}." if varied else ", nothing varies."),
        version=distribution.version(),
        warnings=[warning] if failed else [],
        multiples=_by_setting(results),
        columns=[
            *(varied or ["point"]),
            *(f"#{_titled(results, name)}" for name in drawn),
        ],
        means=_means(results, drawn),
        intervals=_INTERVALS,
        points=len(plan.arms),
        shared=[
            *([_spelled(name), _value(value)] for name, value in plan.shared.items()),
            ["seeds", ", ".join(map(str, plan.seeds))],
        ],
    )


def by_route(results: SweepTable) -> dict[str, SweepTable]:
    """Return the results of a sweep on each route, with the settings that the route uses.

    Only the picture of the routes themselves shows both: one protects recordings and the other
    phones, and their ε cannot be compared.
    """
    plan = results.plan
    if ROUTE not in plan.varied:
        return {"": results}
    tables = {}
    for route in dict.fromkeys(arm.labels[ROUTE] for arm in plan.arms):
        rows = [row for row, arm in enumerate(plan.arms) if arm.labels[ROUTE] == route]
        labels = [plan.arms[row].labels for row in rows]
        others = of_others([route])
        varied = tuple(
            name
            for name in plan.varied
            if name.partition(".")[0] not in others | {ROUTE}
            and any(label[name] != labels[0][name] for label in labels)
        )
        arms = tuple(
            replace(plan.arms[row], labels={name: label[name] for name in varied})
            for row, label in zip(rows, labels, strict=True)
        )
        figures = tuple(results.figures[row] for row in rows)
        tables[str(route)] = SweepTable(replace(plan, varied=varied, arms=arms), figures)
    return tables


def _by_setting(results: SweepTable) -> Iterator[_Multiples]:
    for setting in results.plan.varied:
        if setting == ROUTE:
            yield _small_multiples(results, setting)
            continue
        for route, part in by_route(results).items():
            if setting in part.plan.varied:
                yield _small_multiples(part, setting, route)


def lines(results: SweepTable, metric: str, setting: str) -> list[PictureLine]:
    """Return a figure against a setting, one line for each combination of the other settings.

    With more lines than a picture can show, there is one: the mean over all combinations that have
    the value, seed by seed, so that the interval is over seeds and not over settings.
    """
    plan = results.plan
    values = sorted({arm.labels[setting] for arm in plan.arms}, key=_order)
    combinations: dict[str, dict[Any, Sequence[float | None]]] = {}
    for arm, figures in zip(plan.arms, results.figures, strict=True):
        others = {name: value for name, value in arm.labels.items() if name != setting}
        name = ", ".join(f"{_last(other)} {_value(value)}" for other, value in others.items())
        measured: list[Any] = [row.get(metric) for row in figures]
        combinations.setdefault(name, {})[arm.labels[setting]] = measured
    if len(combinations) > _MOST_LINES:
        together: dict[Any, Sequence[float | None]] = {
            value: [
                _mean([points[value][seed] for points in combinations.values() if value in points])
                for seed in range(len(plan.seeds))
            ]
            for value in values
        }
        combinations = {"": together}
    return [
        PictureLine(
            name,
            tuple(
                (value, found)
                for value in values
                if value in points and (found := over_seeds(metric, points[value])) is not None
            ),
        )
        for name, points in combinations.items()
    ]


def drawn_metrics(results: SweepTable) -> list[str]:
    """Return the figures that differ between runs."""
    rows = results.rows()
    return [name for name in METRICS if len({row.get(name) for row in rows}) > 1]


def _titled(results: SweepTable, metric: str) -> str:
    """Return a figure's name for readers; an ε with the δ of its points, or the largest of them."""
    unit = next((unit for unit, name in EPSILONS.items() if name == metric), None)
    plan = results.plan
    protected = [arm.phases[0] for arm in plan.arms if not arm.phases[0].noiseless]
    if unit is None or not protected:
        return METRICS[metric]
    spent = {settings.expenses(plan.own) for settings in protected}
    deltas = {composed_total(each, [unit])[unit].delta for each in spent}
    return f"{METRICS[metric]}, at δ {'=' if len(deltas) == 1 else '≤'} {real(max(deltas))}"


def _tells(drawn: Sequence[PictureLine]) -> bool:
    """Return whether a figure moves with the setting or the seed; a cost often does neither."""
    return any(
        len({found.mean for _, found in line.points}) > 1
        or any(found.wide for _, found in line.points)
        for line in drawn
    )


def _small_multiples(results: SweepTable, setting: str, route: str = "") -> _Multiples:
    metrics = [name for name in drawn_metrics(results) if setting != ROUTE or name != _COUNTED]
    every = {name: lines(results, name, setting) for name in metrics}
    drawn = {name: each for name, each in every.items() if _tells(each)}
    averaged = not any(line.name for each in drawn.values() for line in each)
    others = [_spelled(name) for name in results.plan.varied if name != setting]
    words = f"Means over seeds with 95 % intervals. {_INTERVALS}"
    if averaged and others:
        words += f" Each is also a mean over all combinations of {', '.join(others)}."
    if len(results.plan.seeds) == 1:
        words = "One seed only: the spread over seeds is unknown."
    if setting == ROUTE:
        words += " The routes protect different units: local a recording, secure-sum a phone."
    title = f"By {_spelled(setting)}" + (f", {route}" if route else "")
    pictures = {
        _titled(results, name): _picture(each, name, setting) for name, each in drawn.items()
    }
    return _Multiples(title, words, pictures)


def _picture(drawn: Sequence[PictureLine], metric: str, setting: str) -> Picture | None:
    values = sorted({value for line in drawn for value, _ in line.points}, key=_order)
    if not values:
        return None
    finite = [value for value in values if value != math.inf]
    numeric = bool(finite) and all(
        isinstance(value, int | float) and value is not True for value in finite
    )
    places = {value: value if numeric else place for place, value in enumerate(values)}
    ends: tuple[Any, Any] = (finite[0], finite[-1]) if numeric else (0, len(values) - 1)
    powers = numeric and ends[0] > 0 and ends[1] >= _LOGARITHMIC * ends[0]
    if numeric and len(finite) < len(values):
        places[math.inf] = _moved(ends[1], _BEYOND, *ends, powers)

    def draw(axes: Axes) -> None:
        for number, line in enumerate(drawn):
            every = [(value, found) for value, found in line.points if math.isfinite(found.mean)]
            # Side by side, so that no interval hides another.
            aside = (number - (len(drawn) - 1) / 2) * _ASIDE
            label = short(line.name, 40) or None
            for infinite in (False, True):
                points = [each for each in every if (each[0] == math.inf) is infinite]
                if not points:
                    continue
                means = [found.mean for _, found in points]
                spans = [found.ends or (found.mean, found.mean) for _, found in points]
                axes.errorbar(
                    [_moved(places[value], aside, *ends, powers) for value, _ in points],
                    means,
                    np.abs(np.array(spans).T - means),
                    color=PALETTE[number % len(PALETTE)],
                    marker="o",
                    markersize=3.5,
                    # No line between names, nor between a number and infinity.
                    linestyle="-" if numeric else "none",
                    linewidth=1.3,
                    capsize=2.5,
                    elinewidth=0.9,
                    label=label,
                )
                label = None
        if powers:
            axes.set_xscale("log")
        axes.set_xticks(list(places.values()), [short(_value(value), 14) for value in values])
        axes.minorticks_off()
        axes.set_xlabel(_spelled(setting))
        axes.grid(axis="y", linewidth=0.6)
        axes.axhline(0, color=MUTED, linewidth=0.8)
        if any(line.name for line in drawn):
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2, fontsize=7)

    said = "; ".join(
        (f"{line.name}: " if line.name else "")
        + ", ".join(f"{_value(value)}: {found}" for value, found in line.points)
        for line in drawn
    )
    height = 2.4 + 0.2 * ((len(drawn) + 1) // 2 if len(drawn) > 1 else 0)
    return drawing.picture(draw, height, f"{METRICS[metric]} by {_spelled(setting)}. {said}.")


def _moved(place: float, aside: float, first: float, last: float, powers: bool) -> float:
    """Move a place on the axis by a fraction of its length."""
    return place * (last / first) ** aside if powers else place + aside * ((last - first) or 1)


def _means(results: SweepTable, names: Sequence[str]) -> list[list[str]]:
    """Return the first points with these figures."""
    columns = [results.estimates(name) for name in names]
    return [
        [
            *(map(_value, arm.labels.values()) if arm.labels else ["all"]),
            *(NOTHING if column[place] is None else str(column[place]) for column in columns),
        ]
        for place, arm in enumerate(results.plan.arms[:_MOST_ROWS])
    ]


def _mean(values: Sequence[Any]) -> float | None:
    there = [float(value) for value in values if value is not None]
    return float(np.mean(there)) if there else None


def _order(value: Any) -> tuple[str, Any]:
    """Return a key that sorts numbers by size, and everything else by name."""
    if isinstance(value, int | float):
        return "", value
    return "text", str(value)


def _last(name: str) -> str:
    return _spelled(name.rpartition(".")[2])


def _spelled(name: str) -> str:
    """Return the name of a setting as people write it."""
    return name.replace("_", " ")


def _value(value: Any) -> str:
    if value == math.inf:  # only an ε
        return f"∞ ({UNPROTECTED.partition(':')[0]})"
    return f"{value:g}" if isinstance(value, float) else NOTHING if value is None else str(value)
