"""What the dashboard, its files and the public API say of a discovery phase."""

from __future__ import annotations

import re

import msgspec
import numpy as np
import pytest
from support import dashboard_records as made
from support.dashboard_server import rows, words

from earshot_protocol.phases.discovery import LABELS, Discovered
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS, Unit
from earshot_protocol.voting.vectors import unit_steps
from earshot_server.dashboard import changes, outcomes, sentences, spending
from earshot_server.dashboard.groups import groups
from earshot_server.dashboard.histograms import global_histograms
from earshot_server.phases.costs import step_costs, together

FOUND = made.published_discovery(50, made.NOW)


@pytest.fixture(scope="module")
def page() -> str:
    return words(f"/phases/{FOUND.phase.hex()}", FOUND)


def ending() -> Discovered:
    assert isinstance(FOUND.ending, Discovered)
    return FOUND.ending


def test_environments_are_groups_of_cells_of_one_label() -> None:
    found = ending()
    assert sorted(row for each in groups(found) for row in (*each.clear, *each.doubtful)) == list(
        range(10)
    )
    first = groups(found)[0]
    assert (first.name, first.clear) == ("home", (0, 1))
    assert first.votes == pytest.approx(
        sum(found.label_votes[row][5] for row in (*first.clear, *first.doubtful))
    )
    assert not any(set(each.doubtful) & {0, 1, 2, 3, 4, 5, 6} for each in groups(found))
    assert found.named == sum(bool(each.clear) for each in groups(found)) == 7


def test_an_environment_without_a_clear_cell_comes_last_and_says_so() -> None:
    faint = made.published_discovery(51, made.NOW, votes=20.0)
    assert isinstance(faint.ending, Discovered)
    clear = [bool(each.clear) for each in groups(faint.ending)]
    assert clear == sorted(clear, reverse=True)
    assert not all(clear)
    lines = outcomes.words_for(faint.parameters).lines(faint.ending)
    assert lines[-1].endswith("which may be noise")
    assert "may be noise" in words(f"/phases/{faint.phase.hex()}", faint)


def test_the_page_says_what_was_found_and_which_cells_moved(page: str) -> None:
    for said in (
        "183 of 200 phones stayed: they named 7 environments, in 8 of 10 cells",
        "into 10 cells around public start centroids; 2 secure sums moved the cells",
        "In 7 cells what phones heard stood clear of the noise",
        "environments named 7",
        "Start centroids 10 Cells, at most k 10",
        "Sums of cells T 2",
        "Dimensions of a point 8",
    ):
        assert said in page
    assert "Votes to keep" not in page  # there is no such vote
    moved = [row["moved"] for row in rows(FOUND, "cells")]
    assert moved == ["yes"] * 7 + ["no"] * 3


def test_a_phase_without_a_sum_of_cells_says_that_none_has_moved() -> None:
    still = msgspec.structs.replace(
        FOUND,
        parameters=msgspec.structs.replace(made.DISCOVERING, sums=0),
        ending=msgspec.structs.replace(
            ending(),
            moved=(False,) * 10,
            privacy=tuple(each for each in ending().privacy if each.step == LABELS),
        ),
    )
    said = words(f"/phases/{still.phase.hex()}", still)
    assert "No sum moved them: all are where the start centroids are" in said
    assert "moved the cells to where sound is" not in said


def test_a_step_that_this_version_does_not_know_is_shown_as_it_was_published() -> None:
    former = msgspec.structs.replace(
        FOUND, parameters=msgspec.structs.replace(made.DISCOVERING, sums=1)
    )
    said = words(f"/phases/{former.phase.hex()}", former)
    assert re.search(
        r"Cells 2 sum of bounded vectors with Skellam noise [\d.]+ \S+ [\d.]+ \S+ –", said
    )


def test_votes_and_their_noise_are_in_votes() -> None:
    shown = rows(FOUND, "cells")
    noise = made.sum_noise(made.DISCOVERING, LABELS, 183)
    steps = unit_steps(10 * len(made.LABELS))
    assert {float(row["noise"]) for row in shown} == {noise.radius() / steps}
    assert [float(row["votes for its label"]) for row in shown] == [
        max(votes) for votes in ending().label_votes
    ]
    named = {row["name"] for row in shown if float(row["p"]) <= 0.05}
    assert named == {name for name in ending().names if name}
    assert all(row["name"] == "unnamed" for row in shown if float(row["p"]) > 0.05)
    assert [row["number"] for row in rows(FOUND, "label-votes")] == [
        str(number) for number in range(1, 11)
    ]


def test_what_it_cost_stands_in_both_units_with_a_replaced_phone_beside(page: str) -> None:
    plan = made.DISCOVERING.plan()
    seen = spending.of_phase(FOUND)
    assert seen.total == together(plan)
    assert set(seen.total) == set(Unit)
    for row in seen.rows:
        assert row.costs == step_costs(plan)[row.step]
        assert row.costs[Unit.REPLACED_PHONE].epsilon > row.costs[Unit.PHONE].epsilon
    assert seen.vacuous == {}
    # Together they cost less than they add up to, at the same δ.
    for unit in LEDGER_UNITS:
        assert seen.total[unit].epsilon < sum(row.costs[unit].epsilon for row in seen.rows)
        assert seen.total[unit].delta == 1e-6
    assert "One phone (zero-out)" in page
    assert "One phone, replaced" in page


def test_votes_over_phases_are_histograms_with_the_noise_of_all_cells() -> None:
    (histogram,) = global_histograms([FOUND])
    votes = np.array(ending().label_votes)
    assert [count.published for count in histogram.counts.values()] == pytest.approx(
        votes.sum(axis=0).tolist()
    )
    one = made.sum_noise(made.DISCOVERING, LABELS, 183)
    assert histogram.radius == pytest.approx(one.times(10).radius() / unit_steps(votes.size))
    assert histogram.environments["home"] == 2
    assert histogram.counts["home"].clear
    assert not histogram.counts["sport"].clear


def test_phases_of_two_kinds_are_not_compared() -> None:
    learned = made.published_learning(10, made.NOW - 9 * made.DAY)
    before = made.published_discovery(51, made.NOW - 30 * made.DAY, votes=20.0)
    now = made.published_discovery(52, made.NOW, votes=120.0)
    comparison = changes.since_before(global_histograms([now, learned, before]))
    assert comparison is not None
    assert comparison.before.phase == before.phase
    clear = {change.label: change.difference for change in comparison.changes if change.clear}
    # Two cells of a hundred votes more each, of 183 phones.
    assert clear["home"] == pytest.approx(100 * 200 / 183, abs=20)
    assert changes.since_before(global_histograms([learned, FOUND])) is None


def test_it_is_said_in_few_words_too() -> None:
    assert sentences.outcome(FOUND) == "7 environments, in 8 of 10 cells"
    said = outcomes.words_for(FOUND.parameters).lines(ending())
    assert said[0].startswith("home: ")
    assert "in cells 1, 2" in said[0]
    overview = words("/", FOUND)
    assert "Discovery phase" in overview
    assert "7 environments, in 8 of 10 cells" in overview
    assert "home" in words("/statistics", FOUND)
