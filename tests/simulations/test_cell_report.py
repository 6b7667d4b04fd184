"""What files and pages say of a simulated discovery by secure sums."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from earshot_protocol.privacy.accounting import Release
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS, Cost, Unit
from earshot_server.dashboard.spending import DEARER_RECORDING
from earshot_simulations.adversary.success import Success
from earshot_simulations.phases.report import headline, render
from earshot_simulations.phases.run import Run, result
from earshot_simulations.phases.secure_sum import CellFindings

MakeRun = Callable[..., Run]


@pytest.fixture
def by_sums(make_run: MakeRun) -> MakeRun:
    """Five cells of three labels, two of them of one; one may be noise, and two did not move."""

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
            "global_centroids": cells,
            "moved": np.array([True, True, False, True, False]),
            "top": np.arange(5),
            "label_votes": np.array(
                [[30.5, 1, 0], [0.0, 20, 1], [0.0, 9, 1], [-2.0, 1, 40], [0.5, 0.25, 0.75]]
            ),
            "labels": np.array([0, 1, 1, 2, 2]),
            "name_p_values": (1e-6, 0.001, 0.04, 1e-9, 1.0),
            "clear_label_accuracy": 0.9,
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
        "92 of 100 phones found 3 environments; 1 cell of 5 stayed unnamed; a new recording gets "
        "the right name 97 % of the time (90 % by names clear of the noise); total "
        "privacy cost ε = 1.54 per recording and ε = 1.4 per phone."
    )


@pytest.mark.slow
def test_no_page_speaks_of_a_vote_that_there_is_not(by_sums: MakeRun) -> None:
    beset = by_sums(adversary=Success({"poisoning": 3}, 3, 5.0, 0, published=True, votes=7.5))
    for run in (by_sums(), beset, by_sums(label_votes=None, labels=np.empty(0, np.int64))):
        words = text(run) + " ".join(re.findall(r'alt="([^"]*)"', render(run)))
        for said in ("to keep", "kept centroid", "What the phones published", "first vote"):
            assert said not in words, said
    assert "Votes for labels in the adversary's cell 8" in text(beset)


def test_environments_and_cells_stand_in_tables(by_sums: MakeRun) -> None:
    words = text(by_sums())
    assert "Environment Cells with this name Cells that may be noise Votes" in words
    assert "office 4 5 40.8 bus 1 – 30.5 park 2, 3 – 29.0" in words
    assert "1 bus bus yes 30.5 10⁻⁶" in words
    assert "3 park park no 9.0 0.04" in words
    assert "5 unnamed office no 0.8 1 " in words
    assert "cells 5 placed, 3 moved, 4 named " in words
    assert "ε per recording 1.54 ε per phone (zero-out) 1.4 " in words


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
    assert alts[3].startswith("4 named cells: bus; park; park; office. 1 cell unnamed.")
    named = pictures(run)[3]
    assert ">park<" in named
    assert ">office<" in named


@pytest.mark.parametrize("dimensions", [3, pytest.param(16, marks=pytest.mark.slow)])
def test_it_is_drawn_in_any_dimensions_and_before_anything_was_summed(
    by_sums: MakeRun, dimensions: int
) -> None:
    early = by_sums(
        dimensions=dimensions,
        moved=np.empty(0, np.bool_),
        label_votes=None,
        labels=np.empty(0, np.int64),
        name_p_values=(),
        privacy=(),
        interrupted="too few phones stayed",
    )
    words = text(early)
    assert "The run ended before the sum of labels." in words
    assert words.count("the run did not get this far") == 2
    assert len(pictures(by_sums(dimensions=dimensions))) == 9


def test_result_json_has_environments_and_cells(by_sums: MakeRun) -> None:
    figures = json.loads(json.dumps(result(by_sums()), allow_nan=False))
    assert (figures["global_centroids"], figures["top_global_centroids"]) == (5, 5)
    assert figures["named"] == 4
    assert figures["environments"] == [
        {"label": "office", "centroids": [3], "doubtful": [4], "votes": 40.75},
        {"label": "bus", "centroids": [0], "doubtful": [], "votes": 30.5},
        {"label": "park", "centroids": [1, 2], "doubtful": [], "votes": 29.0},
    ]
    last = figures["centroids"][4]
    assert (last["label"], last["likely_label"], last["moved"]) == (None, "office", False)
    assert last["p_value"] == 1.0
    assert len(last["start_centroid"]) == 4
    assert last["centroid_votes"] is None
    assert figures["privacy"]["together"]["replaced phone"]["epsilon"] == pytest.approx(3.08)


@pytest.mark.slow
def test_a_cell_that_came_later_has_no_start(by_sums: MakeRun) -> None:
    run = by_sums()
    assert run.found.start_centroids is not None
    grown = by_sums(start_centroids=run.found.start_centroids[:3])
    figures = json.loads(json.dumps(result(grown), allow_nan=False))
    starts = [each["start_centroid"] for each in figures["centroids"]]
    assert [start is None for start in starts] == [False] * 3 + [True] * 2
    assert "5 placed, 3 moved, 4 named" in text(grown).replace("\u202f", " ")
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
