"""What the dashboard, its files and the commands say of a labelling phase."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import numpy as np
import pytest
from support import dashboard_records as made
from support.command import dry_start
from support.dashboard_server import rows, words

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.labelling import Labelled
from earshot_protocol.privacy.mechanisms import Unit
from earshot_server.commands.phase.samples import unnamed
from earshot_server.dashboard import outcomes, sentences, spending
from earshot_server.dashboard.histograms import global_histograms

ANSWERED = made.published_labelling(60, made.NOW)


def ending() -> Labelled:
    assert isinstance(ANSWERED.ending, Labelled)
    return ANSWERED.ending


def test_the_page_says_what_was_answered_and_what_may_be_noise() -> None:
    assert (ending().answered, ending().named) == (11, 9)
    page = words(f"/phases/{ANSWERED.phase.hex()}", ANSWERED)
    for said in (
        "183 of 200 phones stayed and voted: 11 of 12 samples labelled; 2 of the labels may be",
        "If 40 or more agree, noise included, that label is the answer",
        "no answer (8 agree; 40 are needed)",
        "may be noise: p =",
        "Samples to be labelled B 12 of 8 dimensions",
        "Noise of each number of votes σ₂ 11",
        "Votes that must agree T 40",
        "Votes of one phone, at most W 1",
        "samples labelled 11",
        "sum of votes with Skellam noise",
        "One phone (zero-out)",
    ):
        assert said in page
    assert "11 of 12 samples labelled" in words("/", ANSWERED)


def test_its_files_have_every_number() -> None:
    found = ending()
    sheet = rows(ANSWERED, "samples")
    assert [row["agreement"] for row in sheet] == [str(each) for each in found.agreement]
    assert [float(row["p"]) for row in sheet] == list(found.name_p_values)
    assert [row["answer"] == "" for row in sheet] == [label < 0 for label in found.labels]
    assert [row["name"] for row in sheet] == [name or "unnamed" for name in found.names]
    votes = [[int(row[label]) for label in made.LABELS] for row in rows(ANSWERED, "label-votes")]
    assert votes == [list(each) for each in found.label_votes]


def test_what_it_cost_stands_in_every_unit() -> None:
    seen = spending.of_phase(ANSWERED)
    assert [row.step for row in seen.rows] == ["votes", "check"]
    votes, check = seen.rows
    # One recording may turn a whole ballot, and so does an exchange of phones: √2 further.
    assert votes.costs[Unit.RECORDING] == votes.costs[Unit.REPLACED_PHONE]
    assert votes.costs[Unit.RECORDING].epsilon > votes.costs[Unit.PHONE].epsilon
    assert len({cost.epsilon for cost in check.costs.values()}) == 1


def test_samples_that_somebody_chose_are_no_histogram_of_what_phones_hear() -> None:
    assert global_histograms([ANSWERED]) == ()
    assert words("/statistics", ANSWERED)


def test_it_is_said_in_few_words_too() -> None:
    assert sentences.kind(ANSWERED) == "Labelling phase"
    lines = outcomes.words_for(ANSWERED.parameters).lines(ending())
    assert len(lines) == 12
    assert lines[0] == "sample 1: public transport (148 agree)"
    assert re.fullmatch(r"sample 11: \w.* \(41 agree; may be noise: p = [\d.]+\)", lines[10])
    assert lines[11] == "sample 12: no answer (8 agree; 40 are needed)"


# ------------------------------------------------------------------------------- starting one


@pytest.fixture
def file(tmp_path: Path) -> Path:
    np.save(tmp_path / "samples.npy", np.random.default_rng(3).standard_normal((50, 32)))
    return tmp_path / "samples.npy"


def test_what_it_will_cost_and_answer_is_said_before_it_begins(file: Path) -> None:
    said = dry_start("--samples", str(file), "--labels", "bus,park", "--epsilon", "1.5")
    together = next(line for line in said.splitlines() if line.startswith("  together"))
    assert together.count("ε = 1.5 ") == 1, "per phone"
    for each in ("votes: a secure sum", "check: a secure sum", "for each of 50 samples"):
        assert each in said
    assert "a phone whose own budget does not cover that adds only noise" in said
    assert "a default phone accepts this phase" in said
    heavy = dry_start("--samples", str(file), "--largest-weight", "2", "--epsilon", "1.5")
    assert "for a phone that casts 2 votes" in heavy
    assert "a default phone accepts this phase" in heavy, "it makes one vote, which fits"


@pytest.mark.parametrize(
    ("array", "match"),
    [
        (np.ones((3, 32, 1)), r"float64 of shape \(3, 32, 1\)"),
        (np.ones(3), r"an array \(samples, dimensions\) of real numbers"),
        (np.array([["a"]]), "real numbers is needed, not <U1"),
        (np.ones((0, 32)), "0 samples of 32 dimensions; 1 to 4096"),
        (np.ones((5000, 2)), "5000 samples of 2 dimensions; 1 to 4096"),
        (np.array([[1.0, np.nan], [1.0, 2.0]]), "1 of 2 samples have a number that is not finite"),
        (np.array([[1e39, 1.0]]), "not a finite matrix of float32"),
        (np.ones((4, 200)), "dimensions=200: must be at most 128"),
        (np.array([[0.0, 0.0], [1.0, 1.0]]), "1 of 2 are zeros in all dimensions"),
    ],
)
def test_a_file_of_something_else_is_refused_by_name(
    array: np.ndarray, match: str, tmp_path: Path
) -> None:
    np.save(tmp_path / "samples.npy", array)
    assert re.search(match, dry_start("--samples", str(tmp_path / "samples.npy"), status=2))


@pytest.mark.parametrize("content", [b"", b"no array", b"\x93NUMPY\x01\x00"])
def test_a_file_that_is_no_array_is_refused_by_name(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "samples.npy").write_bytes(content)
    refused = dry_start("--samples", str(tmp_path / "samples.npy"), status=2)
    assert "not a .npy file of numbers" in refused
    assert "No such file" in dry_start("--samples", str(tmp_path / "other.npy"), status=2)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (("--threshold", "1001"), "at most 1000, the votes of all 1000 phones"),
        (("--contacts", "3"), "--contacts: not for --samples, but for --statistics"),
        (("--statistics",), "a phase does one of them"),
        (("--discovery", "local"), "a phase does one of them"),
        (("--samples-of", "ab"), "--samples and --samples-of: give one of them"),
        (("--largest-weight", "17"), "largest_weight=17"),
        (("--check-share", "1"), "check_share"),
    ],
)
def test_options_that_do_not_fit_are_refused_by_name(
    options: tuple[str, ...], match: str, file: Path
) -> None:
    assert match in dry_start("--samples", str(file), *options, status=2)


def test_what_another_phase_could_not_name_are_samples() -> None:
    """Cells with sound that are near no prototype; neither those without sound, nor prototypes."""
    found = made.discovered(61)
    chosen = unnamed("61", found)
    assert chosen.encoder == found.encoder
    assert np.array_equal(chosen.points.array(), found.cells.array()[[7]])
    everywhere = msgspec.structs.replace(found, radius=None, name_p_values=(0.0,) * 11)
    with pytest.raises(InvalidInputError, match="every cell with sound is near the prototype"):
        unnamed("61", made.with_owners(everywhere))
    unheard = msgspec.structs.replace(found, name_p_values=(1.0,) * 11)
    assert np.array_equal(unnamed("61", unheard).points.array(), found.cells.array()[:8])


def test_what_a_learning_phase_could_not_name_are_samples() -> None:
    found = made.result(61)
    chosen = unnamed("61", found)
    without = [row for row, name in enumerate(found.names) if name is None]
    assert without
    assert chosen.encoder == found.encoder
    assert np.array_equal(chosen.points.array(), found.centroids.array()[without])
    count = len(found.labels)
    named = msgspec.structs.replace(found, labels=(0,) * count, name_p_values=(0.0,) * count)
    with pytest.raises(InvalidInputError, match=f"all {count} environments have names"):
        unnamed("61", named)
    with pytest.raises(InvalidInputError, match="has published no environments"):
        unnamed("61", None)
    plane = msgspec.structs.replace(found, geometry=Geometry.EUCLIDEAN)
    with pytest.raises(
        InvalidInputError, match="geometry is euclidean, and samples need spherical"
    ):
        unnamed("61", plane)
