"""The open questions of the thesis (10.1): the effect of each setting of both routes.

Settings are chosen on seeds that no other reproduction reports. Use sound and an encoder that no
other study uses, either.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from earshot_protocol.geometry import Geometry
from earshot_protocol.phases import discovery_budget
from earshot_protocol.privacy.local_mechanisms import SelectionMethod
from earshot_simulations.phases.settings import Discovery
from earshot_simulations.reporting.panels import panels_for
from earshot_simulations.reporting.tables import markdown_table
from earshot_simulations.sweeps.phase import ARI_TEST, NAMES
from earshot_simulations.sweeps.sweep import Measure
from earshot_studies.kit.outcome import Reproduction
from earshot_studies.liebenow.at_once.phase import AT_ONCE
from earshot_studies.liebenow.comparison import Measured, Point, compare
from earshot_studies.liebenow.contenders import (
    CHOSEN_ON,
    LOCAL,
    PRINTED,
    ComparedEncoder,
    ReproductionSetup,
    added_up,
)
from earshot_studies.liebenow.printed import as_printed

NAME = "liebenow-10.1"
CROWDS = ((300, 2.0), (1_000, 2.0), (3_000, 1.0), (10_000, 0.5))
"""Numbers of phones, each with the ε per phone, on the secure-sum route."""
FEW_CROWDS = CROWDS[:3]
USUAL = "as usual"
_TITLES = {ARI_TEST: "clustering (ARI), held out", NAMES: "right name, held out"}


class Question(NamedTuple):
    """A setting, and its candidate values.

    Attributes:
        setting: Name of the setting in tables.
        answers: Changes of settings, by the name of the value.
    """

    setting: str
    answers: Mapping[str, Mapping[str, Any]]


def _of(name: str, *values: Any) -> Question:
    return Question(name, {str(value): {name: value} for value in values})


SECURE_SUM = (
    _of("cells", 10, 20, 40),
    Question("most_cells", {str(most): {"cells": 20, "most_cells": most} for most in (20, 40, 60)}),
    _of("sums", 0, 1, 2, 3),
    _of("dimensions", 16, 32, 64),
    _of("label_share", 0.2, 0.3, 0.5),
    _of("kinds", 1, 3, 6),
)
LOCAL_ROUTE = (
    _of("dimensions", 8, 16, 24, 32),
    _of("local_centroids", 4, 6, 10),
    _of("top_local_centroids", 1, 2, 4),
    _of("selection_method", *SelectionMethod),
    _of("clustering_runs", 1, 4, 8),
)
SCALES = (1.0, 4.0, 16.0)
"""Factors by which phones multiply embeddings, as proposed in the thesis."""
_AT_ONCE = ComparedEncoder("secure-sum", AT_ONCE, Discovery.SECURE_SUM, "#54a24b", "D")


def reproduce(setup: ReproductionSetup, full: bool = False) -> Reproduction:
    """Measure every setting of both routes, with all others as usual."""
    setup = replace(setup, first_seed=CHOSEN_ON)
    points = [*_secure_sum(setup, CROWDS if full else FEW_CROWDS), *_local(setup), *_scaled(setup)]
    found = compare(setup, points, tuple(_TITLES))
    rows = [each.described(_TITLES, USUAL) for each in found]
    note = f"""# The effect of each setting

After section 10.1 of Liebenow (2022), which leaves open a search for hyper-parameters, the scaling
of embeddings, and the choice of the best of several private clusterings. One setting at a time is
varied, with all others as usual; differences are to the usual settings, paired by seed.

{setup.described} On the secure-sum route ε is per phone, at δ = {discovery_budget.DELTA:g}; on the
local route the steps for sound add up to {added_up(Geometry.SPHERICAL):g} per recording. Seeds are
those on which settings are chosen; no other reproduction reports them.

*Scaling*: the secure-sum route and our local one cluster directions, so the scale of an embedding
does not matter. The thesis clusters points of [-1, 1]^d, where the entries of an embedding are
small; its phones may multiply them before they are clipped. *Several private clusterings*:
`clustering_runs`, with the same total ε.

{markdown_table(rows, list(rows[0]))}

Intervals are Student's, at 95 %, over seeds; "within noise" means that the interval contains 0.
"""
    return Reproduction(
        NAME, [each.row(USUAL) for each in found], lambda path: _draw(found, path), note
    )


def _secure_sum(setup: ReproductionSetup, crowds: Sequence[tuple[int, float]]) -> Iterator[Point]:
    for phones, epsilon in crowds:
        crowd: dict[str, Any] = {"phones": phones, "epsilon": epsilon, "dropout": 0.05}
        yield from _asked(setup, _AT_ONCE, SECURE_SUM, f"{phones:,} phones, ε = {epsilon:g}", crowd)


def _local(setup: ReproductionSetup) -> Iterator[Point]:
    yield from _asked(setup, LOCAL, LOCAL_ROUTE, f"{setup.size.phones:,} phones", {})


def _scaled(setup: ReproductionSetup) -> Iterator[Point]:
    usual = None
    for scale in SCALES:
        measure = Measure(f"as printed, scaled by {scale:g}", partial(as_printed, scale=scale))
        contender = replace(PRINTED, measure=measure)
        labels: dict[str, str | float] = {
            "crowd": f"{setup.size.phones:,} phones",
            "setting": "scale of embeddings",
            "value": f"{scale:g}",
        }
        arm = setup.arm(contender, setup.data[-1], labels)
        usual = usual or arm
        yield Point(arm, usual)


def _asked(
    setup: ReproductionSetup,
    contender: ComparedEncoder,
    questions: Sequence[Question],
    crowd: str,
    changes: Mapping[str, Any],
) -> Iterator[Point]:
    def arm(setting: str, value: str, **changed: Any) -> Any:
        labels: dict[str, str | float] = {"crowd": crowd, "setting": setting, "value": value}
        return setup.arm(contender, setup.data[-1], labels, **{**changes, **changed})

    usual = arm(USUAL, USUAL)
    yield Point(usual)
    for question in questions:
        for value, changed in question.answers.items():
            yield Point(arm(question.setting, value, **changed), usual)


def _draw(found: Sequence[Measured], path: Path) -> None:
    settings = list(dict.fromkeys(str(each.labels["setting"]) for each in found))
    settings.remove(USUAL)
    figure, panels = panels_for(2, math.ceil(len(settings) / 2), 2.9 * math.ceil(len(settings) / 2))
    for axis, setting in zip(panels.flat, settings, strict=False):
        asked = [each for each in found if each.labels["setting"] == setting]
        values = _in_order(dict.fromkeys(str(each.labels["value"]) for each in asked))
        for mechanism, crowd in dict.fromkeys(
            (str(each.labels["mechanism"]), str(each.labels["crowd"])) for each in asked
        ):
            of_crowd = [
                each
                for each in asked
                if (each.labels["mechanism"], each.labels["crowd"]) == (mechanism, crowd)
            ]
            axis.errorbar(
                [values.index(str(each.labels["value"])) for each in of_crowd],
                [each.gained[NAMES].mean for each in of_crowd],
                yerr=[each.gained[NAMES].wide or 0.0 for each in of_crowd],
                marker="o",
                markersize=4,
                capsize=3,
                linestyle=":",
                label=f"{mechanism}, {crowd}",
            )
        axis.axhline(0, color="#888888", linewidth=1)
        axis.set_xticks(range(len(values)), values)
        axis.set_title(setting.replace("_", " "))
        axis.legend(frameon=False, fontsize=7)
    for axis in panels[:, 0]:
        axis.set_ylabel("right names, against as usual")
    figure.savefig(path, dpi=110)


def _in_order(values: Iterable[str]) -> list[str]:
    """Return numbers by size, and names in the given order."""
    named = list(values)
    return sorted(named, key=float) if all(map(_is_number, named)) else named


def _is_number(value: str) -> bool:
    return value.replace(".", "", 1).isdigit()
