"""What the dashboard and its files say of a discovery phase."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import ncx2
from support import dashboard_records as made
from support.dashboard_records import DISCOVERING
from support.dashboard_server import application, rows, words

from earshot_protocol.phases.discovery import LABELS, Discovered
from earshot_protocol.privacy.mechanisms import GRID, LEDGER_UNITS, Unit
from earshot_protocol.wire import Matrix
from earshot_server.dashboard import changes, charts, outcomes, sentences, spending
from earshot_server.dashboard.histograms import LengthNoise, global_histograms
from earshot_server.phases.costs import step_costs, together
from earshot_server.records import PhaseRecord

FOUND = made.published_discovery(50, made.NOW)
CLEAR = ("public transport", "car", "street", "nature", "gastronomy", "home", "office")
FAINT = ("shop", "event", "workshop", "sport")


@pytest.fixture(scope="module")
def page() -> str:
    return words(f"/phases/{FOUND.phase.hex()}", FOUND)


def ending(record: PhaseRecord = FOUND) -> Discovered:
    assert isinstance(record.ending, Discovered)
    return record.ending


def changed(**changes: Any) -> PhaseRecord:
    found = msgspec.structs.replace(ending(), **changes)
    return msgspec.structs.replace(FOUND, ending=made.with_owners(found))


# --------------------------------------------------------------------------- labels and cells


def test_every_label_stands_with_its_length_or_is_left_out_by_name(page: str) -> None:
    shown = {row["label"]: row for row in rows(FOUND, "labels")}
    assert set(shown) == set(made.LABELS)
    for place, name in enumerate(made.LABELS):
        row = shown[name]
        assert float(row["length"]) == ending().lengths[place]
        assert float(row["p"]) == ending().name_p_values[place]
        assert row["clear of the noise"] == ("yes" if name in CLEAR else "no")
        assert row["number"] == str(place + 1)
    lengths = [float(row["length"]) for row in rows(FOUND, "labels")]
    assert lengths[:7] == sorted(lengths[:7], reverse=True)
    assert "nothing is given these names, and sound that is nearest to one of them is" in page
    said = page.partition("Not clear of the noise are ")[2].partition(": nothing is given")[0]
    assert set(said.replace(" and ", ", ").split(", ")) == set(FAINT)


def test_cells_have_the_name_of_the_nearest_prototype_within_the_radius(page: str) -> None:
    shown = rows(FOUND, "cells")
    named = ("home", "home", *CLEAR[:5], "unknown", "unknown", "unknown")
    assert tuple(row["name"] for row in shown) == named
    assert [row["moved"] for row in shown] == ["yes"] * 8 + ["no"] * 2
    assert [float(row["length"]) for row in shown] == list(ending().cell_lengths)
    assert [row["nobody named it"] for row in shown] == ["no"] * 7 + ["yes"] + ["no"] * 2
    by_label = {row["label"]: row["cells"] for row in rows(FOUND, "labels")}
    assert by_label["home"] == "c1, c2"
    assert by_label["office"] == "", "its cell is not one with sound"
    for said in (
        "within a distance (1 − cosine) of 0.5, an angle of 60°; beyond it a sound is unknown",
        "of the kinds of public sound with which the phase began, 35 % stay unknown",
        "1 kind of place was named by nobody: c8, heard by about 12 phones or more",
        "into 10 cells around public start centroids. 2 secure sums moved the cells",
        "in 8 cells what phones heard was clear of the noise",
        "c8 unknown nobody named it yes 12.4",
    ):
        assert said in page


def test_without_a_radius_every_cell_has_a_name() -> None:
    boundless = changed(radius=None, name_p_values=(0.0,) * 11)
    assert all(row["name"] in made.LABELS for row in rows(boundless, "cells"))
    assert {row["nobody named it"] for row in rows(boundless, "cells")} == {"no"}
    said = words(f"/phases/{boundless.phase.hex()}", boundless)
    assert "the nearest prototype, at any distance" in said
    assert "named by nobody" not in said
    assert sentences.outcome(boundless) == "11 of 11 labels clear of the noise"


def test_one_map_has_prototypes_and_cells_with_sound_and_those_without_a_name_are_dashed() -> None:
    client = application(made.HandMadeArchive([FOUND])).test_client()
    drawn = client.get(f"/phases/{FOUND.phase.hex()}").text
    marks = dict(re.findall(r"<title>([^<:]+): [^<]*</title><circle class=\"([^\"]+)\"", drawn))
    assert set(marks) == {*map(str, range(1, 8)), *(f"c{cell}" for cell in range(1, 9))}
    assert marks["c8"] == f"place cell hue-{charts.HUES}"
    assert marks["c1"] == marks["c2"] == f"place cell {marks['6'].removeprefix('place ')}"
    names = re.findall(r'<text class="name"[^>]*>([^<]*)<', drawn)
    assert set(names) <= set(CLEAR), "a ring has a number and no name"


def test_where_nothing_is_clear_no_label_has_a_prototype() -> None:
    nothing = made.empty_discovery(53, made.NOW)
    said = words(f"/phases/{nothing.phase.hex()}", nothing)
    assert "they gave 0 of 11 labels a clear prototype" in said
    assert "Map of" not in said
    assert outcomes.nothing_clear(ending(nothing)) == (
        "nothing stands clear of the noise: none of 11 labels names anything; a larger crowd "
        "would show more"
    )
    # Places that nobody named were found, so that something was.
    heard = changed(name_p_values=(1.0,) * 11)
    assert outcomes.nothing_clear(ending(heard)) == ""
    assert [row["nobody named it"] for row in rows(heard, "cells")] == ["yes"] * 8 + ["no"] * 2


def test_a_cell_nearest_to_a_label_that_may_be_noise_is_unknown_and_says_so() -> None:
    office = made.LABELS.index("office")
    p_values = list(ending().name_p_values)
    p_values[office] = 0.3
    moved = (*(True,) * 8, False, True)
    cells = np.array(ending().cells.array())
    cells[9] = ending().centroids.array()[office]
    doubtful = changed(name_p_values=tuple(p_values), moved=moved, cells=Matrix.of(cells))
    row = rows(doubtful, "cells")[9]
    assert (row["name"], row["may be"], row["nobody named it"]) == ("unknown", "office", "yes")
    said = words(f"/phases/{doubtful.phase.hex()}", doubtful)
    assert "c10 unknown near office, which may be noise yes" in said
    (row,) = (row for row in rows(doubtful, "labels") if row["label"] == "office")
    assert (row["cells"], row["clear of the noise"]) == ("", "no")


def test_a_choice_with_a_prototype_stands_below_its_label_and_names_its_cells() -> None:
    """Of two choices of home, one has a prototype where the cell is that nobody named."""
    found, places = ending(), ending().centroids.array()
    own = found.cells.array()[[7]]
    finer = changed(
        centroids=Matrix.of(np.concatenate([places, own, -own])),
        labels=(*found.labels, 5, 5),
        choices=(*found.choices, "kitchen", "attic"),
        name_p_values=(*found.name_p_values, 1e-9, 1.0),
        lengths=(*found.lengths, 24.0, 3.0),
    )
    finer = msgspec.structs.replace(finer, parameters=msgspec.structs.replace(DISCOVERING, rows=13))
    shown = rows(finer, "labels")
    assert [(row["label"], row["choice"]) for row in shown][:3] == [
        ("home", ""),
        ("home", "kitchen"),
        ("home", "attic"),
    ]
    assert (shown[0]["cells"], shown[1]["cells"]) == ("c1, c2", "c8")
    assert (shown[1]["number"], shown[1]["length"]) == ("12", "24.0")
    assert rows(finer, "cells")[7]["name"] == "kitchen"
    assert rows(finer, "cells")[7]["nobody named it"] == "no"
    said = words(f"/phases/{finer.phase.hex()}", finer)
    assert "kitchen a choice of home" in said
    assert "attic a choice of home not clear of the noise 3.0 1" in said
    assert "they gave 7 of 11 labels a clear prototype" in said
    (histogram,) = global_histograms([finer])
    assert histogram.environments["home"] == 2
    assert list(histogram.counts) == list(made.LABELS)
    assert changes.since_before(global_histograms([FOUND, finer])) is None


def test_a_label_of_several_kinds_of_sound_has_several_prototypes_and_one_length() -> None:
    found = ending()
    split = changed(
        centroids=Matrix.of(np.concatenate([found.centroids.array(), found.cells.array()[[7]]])),
        labels=(*found.labels, 5),
        choices=(*found.choices, ""),
        name_p_values=(*found.name_p_values, 1e-9),
        lengths=(*found.lengths, 12.0),
    )
    split = msgspec.structs.replace(split, parameters=msgspec.structs.replace(DISCOVERING, kinds=6))
    shown = rows(split, "labels")
    assert [(row["label"], row["number"], row["cells"]) for row in shown][:2] == [
        ("home", "6", "c1, c2"),
        ("home", "12", "c8"),
    ]
    assert sentences.outcome(split) == "7 of 11 labels clear of the noise"
    (histogram,) = global_histograms([split])
    assert list(histogram.counts) == list(made.LABELS)
    home = histogram.counts["home"]
    assert home.published == pytest.approx(np.hypot(found.lengths[5], 12.0))
    assert histogram.environments["home"] == 2
    assert histogram.counts["car"].published == found.lengths[1]
    deviation = made.sum_noise(split.parameters, LABELS, 183).deviation
    assert histogram.radius == pytest.approx(LengthNoise(deviation, 6 * 32).radius(0.95) / GRID)
    assert changes.since_before(global_histograms([FOUND, split])) is None
    said = words(f"/phases/{split.phase.hex()}", split)
    assert "Kinds of sound by which rows are split 6" in said


def test_it_is_said_in_few_words_too() -> None:
    short = "7 of 11 labels clear of the noise, and 1 kind of place that nobody named"
    assert sentences.outcome(FOUND) == short
    assert sentences.headline(FOUND) == (
        "183 of 200 phones stayed: they gave 7 of 11 labels a clear prototype, and found 1 kind "
        "of place that nobody named"
    )
    said = outcomes.words_for(FOUND.parameters).lines(ending())
    assert re.fullmatch(r"home: length \d\d\.\d, cells c1, c2", said[0])
    for name in FAINT:
        (line,) = (each for each in said if each.startswith(name))
        assert re.fullmatch(r".*: not clear of the noise \(p = [\d.]+\), so it names nothing", line)
    assert "cell c8: a kind of place that nobody named, heard by about 12 phones or more" in said
    assert said[-1].endswith("an estimate of how much unlabelled sound will.")
    nothing = msgspec.structs.replace(ending(), name_p_values=(1.0,) * 11)
    without = outcomes.words_for(FOUND.parameters).lines(nothing)
    assert without[-1].endswith("beyond it a sound is unknown."), "nothing more is known"
    assert outcomes.words_for(FOUND.parameters).figure(ending()) == ("labels clear of the noise", 7)
    assert short in words("/", FOUND)


def test_the_parameters_say_which_rows_the_sum_of_labels_has(page: str) -> None:
    for said in (
        "Start centroids 10 Cells, at most k 10",
        "Sums of cells T 2",
        "Dimensions of a point 32",
        "Rows of the sum of labels 11, one for each label",
    ):
        assert said in page
    finer = msgspec.structs.replace(FOUND, parameters=msgspec.structs.replace(DISCOVERING, rows=40))
    said = words(f"/phases/{FOUND.phase.hex()}", finer)
    assert "sum of labels 40: 11 of labels, and one for each choice with another name" in said


# ------------------------------------------------------------------------ lengths over time


@pytest.mark.parametrize("confidence", [0.95, 0.9977])
@pytest.mark.parametrize("dimensions", [2, 8, 32, 64])
def test_a_true_length_is_seldom_farther_than_the_noise_is_said_to_reach(
    dimensions: int, confidence: float
) -> None:
    """By the law of the published length, for every true one; and no smaller bound would do."""
    radius = LengthNoise(3.0, dimensions).radius(confidence) / 3.0

    def missed(true: NDArray[np.float64], radius: float) -> float:
        law = ncx2(dimensions, true**2)
        low, high = true - radius, true + radius
        short = np.where(low > 0, law.cdf(low**2 + dimensions), 0.0)
        return float((short + law.sf(high**2 + dimensions)).max())

    lengths = np.concatenate([np.linspace(0, 3 * radius, 300), [radius + 1e-9, 30, 300]])
    assert missed(lengths, radius) <= (1 - confidence) * (1 + 1e-6)
    assert missed(lengths, 0.95 * radius) > 1 - confidence


def test_lengths_over_phases_are_histograms_with_the_noise_of_a_row() -> None:
    (histogram,) = global_histograms([FOUND])
    assert [each.published for each in histogram.counts.values()] == list(ending().lengths)
    noise = made.sum_noise(made.DISCOVERING, LABELS, 183).deviation
    radius = LengthNoise(noise, 32).radius(0.95) / GRID
    assert histogram.radius == pytest.approx(radius)
    assert histogram.what == "lengths"
    for name, count in histogram.counts.items():
        assert count.clear == (name in CLEAR)
        assert histogram.environments[name] == (name in CLEAR)
        assert count.most == pytest.approx(count.published + radius)


def test_lengths_and_votes_stand_in_one_table_and_are_not_compared() -> None:
    before = made.published_learning(51, made.NOW - 30 * made.DAY)
    mixed = global_histograms([FOUND, before])
    assert [each.what for each in mixed] == ["votes", "lengths"]
    assert changes.since_before(mixed) is None
    client = application(made.HandMadeArchive([FOUND, before])).test_client()
    text = client.get("/statistics/labels/counts.csv").text.removeprefix("\ufeff")
    counts = list(csv.DictReader(io.StringIO(text)))
    kinds = {(row["phase"], row["what"]) for row in counts}
    assert kinds == {(FOUND.phase.hex(), "lengths"), (before.phase.hex(), "votes")}
    page = client.get("/statistics").text
    assert 'class="mark' in page
    assert 'class="course"' not in page, "no line joins a length to votes"
    older = made.published_discovery(52, made.NOW - 60 * made.DAY, length=90.0)
    compared = changes.since_before(global_histograms([FOUND, before, older]))
    assert compared is not None
    assert compared.before.phase == older.phase
    joined = application(made.HandMadeArchive([FOUND, before, older])).test_client()
    assert joined.get("/statistics").text.count('class="course"') == len(made.LABELS)


def test_a_phase_without_a_sum_of_cells_says_that_none_has_moved() -> None:
    found = ending()
    still = msgspec.structs.replace(
        FOUND,
        parameters=msgspec.structs.replace(FOUND.parameters, sums=0),
        ending=msgspec.structs.replace(
            found,
            moved=(False,) * 10,
            cell_lengths=(0.0,) * len(found.cell_lengths),
            privacy=tuple(each for each in found.privacy if each.step == LABELS),
        ),
    )
    said = words(f"/phases/{still.phase.hex()}", still)
    assert "No sum moved them: all are at the start centroids" in said
    assert "moved the cells to where sound is" not in said


def test_a_step_that_the_plan_does_not_have_is_shown_as_it_was_published() -> None:
    other = msgspec.structs.replace(
        FOUND, parameters=msgspec.structs.replace(made.DISCOVERING, sums=1)
    )
    said = words(f"/phases/{other.phase.hex()}", other)
    assert re.search(
        r"Cells 2 sum of bounded vectors with Skellam noise [\d.]+ \S+ [\d.]+ \S+ –", said
    )


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
