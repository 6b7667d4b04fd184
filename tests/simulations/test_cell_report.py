"""What files and pages say of a simulated discovery by secure sums."""

from __future__ import annotations

import base64
import html
import itertools
import json
import operator
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.discovery import Discovered
from earshot_protocol.privacy.accounting import Release
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS, Cost, Unit
from earshot_protocol.wire import Matrix
from earshot_server.dashboard.spending import DEARER_RECORDING
from earshot_simulations.adversary.success import Success
from earshot_simulations.phases.environments import score
from earshot_simulations.phases.run import Run, headline, render, result
from earshot_simulations.phases.secure_sum import CellFindings
from earshot_simulations.populations import Recordings

MakeRun = Callable[..., Run]
UNSUMMED: dict[str, Any] = {
    "global_centroids": None,
    "top": np.empty(0, np.int64),
    "labels": np.empty(0, np.int64),
    "lengths": (),
    "name_p_values": (),
    "cell_labels": (),
    "cell_ari": None,
    "unknown": None,
}
"""Findings of a phase whose last sum is not over."""


@pytest.fixture
def by_sums(make_run: MakeRun) -> MakeRun:
    """Three labels and five cells: of park there are two prototypes, and office may be noise.

    Two cells did not move, and one that did has no name.
    """

    def make(dimensions: int = 4, **changes: object) -> Run:
        random = np.random.default_rng(11)
        cells = random.normal(0, 1, (5, dimensions)).astype(np.float32)
        cells /= np.linalg.norm(cells, axis=1, keepdims=True)
        costs = {
            unit: Cost(epsilon, 1e-6) for unit, epsilon in zip(Unit, (1.1, 1.0, 2.2), strict=True)
        }
        values: dict[str, object] = {
            "configuration": {"phones": 100, "discovery": "secure-sum", "epsilon": 1.5},
            "start_centroids": cells[::-1].copy(),
            "cells": cells,
            "moved": np.array([True, True, False, True, False]),
            "cell_lengths": (30.5, 12.25, 0.0, 7.0, 0.0),
            "cell_labels": (0, 1, 1, -1, 0),
            "global_centroids": -cells[:4],
            "top": np.arange(4),
            "labels": np.array([0, 1, 1, 2]),
            "lengths": (25.0, 3.0, 4.0, 0.5),
            "name_p_values": (1e-6, 0.001, 0.04, 1.0),
            "radius": 0.75,
            "clear_label_accuracy": 0.9,
            "cell_ari": 0.625,
            "unknown": 0.125,
            "privacy": tuple(
                Release(step, unit, costs[unit].epsilon, costs[unit].delta, "vectors")
                for step in ("cells 1", "labels")
                for unit in LEDGER_UNITS
            ),
            "costs": {"cells 1": costs, "labels": costs},
            "together": {unit: Cost(1.4 * cost.epsilon, 1e-6) for unit, cost in costs.items()},
        }
        return make_run(dimensions=dimensions, found=CellFindings, **(values | changes))

    return make


def text(run: Run) -> str:
    """The page's words, without its pictures."""
    words = re.sub(r"<style>.*?</style>", "", render(run), flags=re.DOTALL)
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", words)))


def pictures(run: Run) -> list[str]:
    found = re.findall(r"data:image/svg\+xml;base64,([^\"]+)", render(run))
    return [base64.b64decode(each).decode() for each in found]


def test_the_headline_counts_clear_names_and_what_sums_cost_together(by_sums: MakeRun) -> None:
    assert headline(by_sums()).replace("\u202f", " ") == (
        "92 of 100 phones found 2 environments; 1 label is not clear of the noise; a new recording "
        "gets the right name 97 % of the time (90 % by names clear of the noise); total "
        "privacy cost ε = 1.54 at δ = 10⁻⁶ per recording and ε = 1.4 at δ = 10⁻⁶ per phone."
    )
    none = by_sums(name_p_values=(1.0, 1.0, 1.0, 1.0))
    assert "no environment was found and named" in headline(none)
    all_clear = by_sums(name_p_values=(0.01,) * 4)
    assert "not clear" not in headline(all_clear)


@pytest.mark.slow
def test_no_page_speaks_of_a_vote_that_there_is_not(by_sums: MakeRun) -> None:
    told = Success({"poisoning": 3}, 3, 5.0, 0, published=True, votes=7.5, misnamed=0.25)
    beset = by_sums(adversary=told)
    for run in (by_sums(), beset, by_sums(**UNSUMMED)):
        words = text(run) + " ".join(re.findall(r'alt="([^"]*)"', render(run)))
        for said in (
            "to keep",
            "kept centroid",
            "What the phones published",
            "first vote",
            "Votes for",
        ):
            assert said not in words, said
    assert "Length of the adversary's prototype 8" in text(beset)
    assert "Held-out recordings with a wrong name that it wants 25 %" in text(beset)


def test_labels_and_cells_stand_in_tables(by_sums: MakeRun) -> None:
    words = text(by_sums())
    assert "Label Clear of the noise Prototypes Length p Cells" in words
    # Two prototypes of one label: the root of the sum of squares, and the smaller p-value.
    assert (
        "bus yes 1 25.0 10⁻⁶ 1, 5 park yes 2 5.0 0.001 2, 3 office may be noise 1 0.5 1 –" in words
    )
    assert "Sound farther than 0.75 (1 − cosine) from all prototypes is unknown." in words
    assert "1 bus yes 30.5 2 park yes 12.2 3 park no 0.0 4 unknown yes 7.0 5 bus no 0.0" in words
    assert "cells 5 placed, 3 moved; 2 of 3 labels named " in words
    assert "cells alone (ARI) 0.62 " in words
    assert "unknown 12 % " in words
    assert "ε per recording, at δ = 10⁻⁶ 1.54 ε per phone (zero-out), at δ = 10⁻⁶ 1.4 " in words
    boundless = text(by_sums(radius=None))
    assert "from all prototypes is unknown" not in boundless


def test_costs_stand_in_both_units_with_a_replaced_phone_beside(by_sums: MakeRun) -> None:
    words = text(by_sums())
    assert "labels 1.1 10⁻⁶ 1 10⁻⁶ 2.2 vectors" in words
    assert "Together 1.54 10⁻⁶ 1.4 10⁻⁶ 3.08" in words
    assert "ε phone (zero-out)" in words
    assert "ε phone, replaced" in words
    assert DEARER_RECORDING in words
    equal = dict.fromkeys(Unit, Cost(1.4, 1e-6))
    assert DEARER_RECORDING not in text(replace(by_sums(), together=equal))


@pytest.mark.slow
def test_pictures_follow_the_cells(by_sums: MakeRun) -> None:
    run = by_sums()
    alts = re.findall(r'alt="([^"]*)"', render(run))
    assert alts[1].startswith("5 public start centroids, ")
    assert alts[2].startswith("3 cells moved to where sound is, and 2 cells in which no sound")
    assert alts[3].startswith("3 prototypes: bus; park; park. 1 cell with sound that is unknown.")
    named = pictures(run)[3]
    assert ">park<" in named
    assert ">office<" not in named


@pytest.mark.parametrize("dimensions", [3, pytest.param(16, marks=pytest.mark.slow)])
def test_it_is_drawn_in_any_dimensions_and_before_anything_was_summed(
    by_sums: MakeRun, dimensions: int
) -> None:
    early = by_sums(
        dimensions=dimensions,
        moved=np.empty(0, np.bool_),
        cell_lengths=(),
        **UNSUMMED,
        privacy=(),
        interrupted="too few phones stayed",
    )
    words = text(early)
    assert "The run ended before the sum of labels." in words
    assert words.count("the run did not get this far") == 2
    assert len(pictures(by_sums(dimensions=dimensions))) == 8
    figures = json.loads(json.dumps(result(early), allow_nan=False))
    assert (figures["centroids"], figures["environments"], figures["named"]) == ([], [], None)
    assert [each["label"] for each in figures["cells"]] == [None] * 5


def test_result_json_has_environments_and_cells(by_sums: MakeRun) -> None:
    figures = json.loads(json.dumps(result(by_sums()), allow_nan=False))
    assert (figures["global_centroids"], figures["top_global_centroids"]) == (4, 4)
    assert (figures["named"], figures["cell_ari"], figures["radius"]) == (2, 0.625, 0.75)
    names = ("label", "likely_label", "centroids", "length", "cells")
    assert [tuple(each[name] for name in names) for each in figures["environments"]] == [
        ("bus", "bus", [0], 25.0, [0, 4]),
        ("park", "park", [1, 2], 5.0, [1, 2]),
        (None, "office", [3], 0.5, []),
    ]
    last = figures["centroids"][3]
    assert (last["label"], last["p_value"], last["length"]) == (None, 1.0, 0.5)
    assert "votes" not in last
    cells = figures["cells"]
    assert [each["label"] for each in cells] == ["bus", "park", "park", None, "bus"]
    assert [each["moved"] for each in cells] == [True, True, False, True, False]
    assert [each["length"] for each in cells] == [30.5, 12.25, 0.0, 7.0, 0.0]
    assert [each["start_centroid"] for each in cells] == [each["centroid"] for each in cells][::-1]
    assert figures["privacy"]["together"]["replaced phone"]["epsilon"] == pytest.approx(3.08)


@pytest.mark.slow
def test_a_cell_that_came_later_has_no_start(by_sums: MakeRun) -> None:
    run = by_sums()
    assert run.found.start_centroids is not None
    grown = by_sums(start_centroids=run.found.start_centroids[:3])
    figures = json.loads(json.dumps(result(grown), allow_nan=False))
    starts = [each["start_centroid"] for each in figures["cells"]]
    assert [start is None for start in starts] == [False] * 3 + [True] * 2
    assert "5 placed, 3 moved; 2 of 3 labels named" in text(grown).replace("\u202f", " ")
    assert len(pictures(grown)) == len(pictures(run))


def test_the_local_route_keeps_its_words(make_run: MakeRun) -> None:
    words = text(make_run())
    assert "Votes to keep" in words
    assert "a simulated learning phase" in words
    assert result(make_run())["environments"] == [
        {"label": "park", "centroids": [1]},
        {"label": "bus", "centroids": [0]},
        {"label": None, "centroids": [2]},
    ]


def discovered(cells: np.ndarray, lengths: tuple[float, ...], labels: int) -> Discovered:
    """A result of a phase in which nobody labelled anything."""
    return Discovered(
        phase=bytes(16),
        geometry=Geometry.SPHERICAL,
        centroids=Matrix.of(cells[:labels]),
        labels=tuple(range(labels)),
        choices=("",) * labels,
        label_names=tuple("abcdef"[:labels]),
        name_p_values=(1.0,) * labels,
        lengths=(0.0,) * labels,
        cells=Matrix.of(cells),
        moved=(True,) * len(cells),
        cell_lengths=lengths,
        cell_prototypes=(-1,) * len(cells),
        refused=1.0,
        encoder="any",
        privacy=(),
    )


def test_cells_alone_are_scored_without_anybodys_labels() -> None:
    """Three pairs of cells that lie close together, and a stray one in which little was heard."""
    random = np.random.default_rng(4)
    middles = np.eye(3, dtype=np.float32)
    cells = np.repeat(middles, 2, axis=0) + np.float32(0.1) * random.normal(size=(6, 3))
    cells = np.vstack([cells, [[1.0, 0.5, 0.0]]]).astype(np.float32)
    scenes = np.repeat(np.arange(3), 50)
    points = (middles[scenes] + 0.1 * random.normal(size=(150, 3))).astype(np.float32)
    nobody = np.full(150, -1, np.int16)
    held_out = Recordings(points, nobody, scenes.astype(np.int16))
    found = discovered(cells, (9.0, 8.0, 7.0, 9.0, 8.0, 7.0, 0.25), 3)
    scores = score(found, held_out, held_out)
    assert scores.cell_ari == 1.0
    assert scores.clear_label_accuracy == 0.0
    # Where scenes are two of the three places, one pair is a group too many: textbook index.
    two = np.minimum(scenes, 1)
    merged = score(found, held_out, held_out._replace(scenes=two.astype(np.int16)))
    assert merged.cell_ari == pytest.approx(adjusted_rand(two, scenes))
    # As many groups as there are labels: with two of them, the two places that hear least are one.
    few = discovered(cells, (90.0, 90.0, 7.0, 9.0, 8.0, 7.0, 0.25), 2)
    paired = score(few, held_out, held_out)
    assert paired.cell_ari == pytest.approx(adjusted_rand(scenes, np.minimum(scenes, 1)))
    assert scores.unknown is None


def test_sound_beyond_the_radius_is_unknown_and_has_its_right_name_all_the_same() -> None:
    """Two prototypes at right angles; of each label three sounds near it and one at 60°."""
    angles = np.radians([0.0, 10.0, -20.0, -60.0, 90.0, 80.0, 100.0, 150.0])
    points = np.column_stack([np.cos(angles), np.sin(angles)]).astype(np.float32)
    scenes = np.repeat(np.arange(2), 4).astype(np.int16)
    held_out = Recordings(points, np.full(8, -1, np.int16), scenes)
    found = discovered(np.eye(2, dtype=np.float32), (9.0, 9.0), 2)
    clear = msgspec.structs.replace(found, name_p_values=(0.0, 1.0))
    for radius, unknown in ((0.01, 6 / 8), (0.1, 2 / 8), (0.6, 0.0), (None, None)):
        scores = score(msgspec.structs.replace(clear, radius=radius), held_out, held_out)
        assert scores.unknown == unknown
        assert (scores.label_accuracy, scores.clear_label_accuracy) == (1.0, 0.5)


def adjusted_rand(one: np.ndarray, other: np.ndarray) -> float:
    """Hubert and Arabie's index (1985), from pairs of recordings that are counted one by one."""
    pairs = list(itertools.combinations(range(len(one)), 2))
    first = [bool(one[a] == one[b]) for a, b in pairs]
    second = [bool(other[a] == other[b]) for a, b in pairs]
    both = sum(map(operator.and_, first, second))
    expected = sum(first) * sum(second) / len(pairs)
    return (both - expected) / ((sum(first) + sum(second)) / 2 - expected)
