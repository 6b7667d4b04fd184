"""The published vectors of sums of vectors, against a phone written from the document alone."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from support import textbook_cells as textbook
from support.precision import digits

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.messages import AnyParameters
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.privacy import noise
from earshot_protocol.privacy.mechanisms import Unit, VectorSum
from earshot_protocol.voting.vectors import quantized

_precise = digits(80)
VECTORS = json.loads(
    (Path(__file__).resolve().parents[2] / "docs" / "vectors" / "cells.json").read_text("utf-8")
)


@pytest.mark.parametrize("case", VECTORS["inputs"])
def test_what_a_phone_puts_into_a_sum(case: dict[str, Any]) -> None:
    centroids = case["centroids"] or textbook.start_rows(case["start"])
    centroids = [[textbook.float32(x) for x in row] for row in centroids]
    found = textbook.cells_input(case["points"], centroids, case["most_cells"])
    assert found == case["sum_cells"]
    assert sum(x * x for row in found for x in row) <= 2**24


def label_rows(case: dict[str, Any]) -> tuple[list[int], list[int] | None]:
    """Rows of labels and of choices, of each recording; -1 where it has none."""
    labels, choices = case["labels"], case["choices"] or [[]] * len(case["labels"])
    label_of = {name: label for label, each in enumerate(choices) for name in each}
    label_of |= {name: label for label, name in enumerate(labels)}
    first = [label_of.get(name, -1) for name in case["names"]]
    if case["rows"] == len(labels):
        return first, None
    further = [name for each in choices for name in each if name not in labels]
    assert case["rows"] == len(labels) + len(further)
    return first, [
        len(labels) + further.index(name) if name in further else -1 for name in case["names"]
    ]


def split_of(case: dict[str, Any]) -> textbook.Split | None:
    """Cells and their kinds, by which rows are split; None where they are whole."""
    if case["kinds"] == 1:
        assert case["start"] is case["centroids"] is None
        assert case["kinds_of_cells"] == []
        return None
    cells = case["centroids"] or textbook.start_rows(case["start"])
    kinds = case["kinds_of_cells"]
    assert len(kinds) == len(cells)
    cells = [[textbook.float32(x) for x in row] for row in cells]
    return textbook.Split(cells, kinds, case["kinds"])


@pytest.mark.parametrize("case", VECTORS["label_inputs"])
def test_what_a_phone_puts_into_the_sum_of_labels(case: dict[str, Any]) -> None:
    first, own = label_rows(case)
    names, rows = len(case["labels"]), case["rows"]
    found = textbook.labels_input(case["points"], first, names, 2, own, rows, split_of(case))
    assert len(found) == rows * case["kinds"]
    assert found == case["sum_labels"]
    assert sum(x * x for row in found for x in row) <= 2**24


def test_the_vectors_of_labels_tell_apart_what_could_be_confused() -> None:
    """Labels alone count twice where choices have rows, and nothing else counts differently."""
    cases = VECTORS["label_inputs"]
    plain, flat, finer, one, _, alone, _, pair, twice = cases[:9]
    assert [case["rows"] for case in (plain, flat, finer)] == [3, 3, 6]
    tables = [case["sum_labels"] for case in (plain, flat, finer)]
    assert tables[0] != tables[1] != tables[2][:3]
    # A single recording with a label alone: u, and u/√2.
    lengths = [
        math.sqrt(sum(x * x for row in case["sum_labels"] for x in row)) for case in (one, alone)
    ]
    assert lengths[1] == pytest.approx(lengths[0] / math.sqrt(2), rel=1e-3)
    # Two of one choice fill its row like their label's.
    assert np.any(pair["sum_labels"])
    assert twice["sum_labels"][0] == twice["sum_labels"][3] != [0, 0]
    assert not any(np.any(case["sum_labels"]) for case in cases[9:15])
    names = set(flat["names"])
    assert None in names
    assert "a former label" in names
    assert names & set(flat["labels"])
    assert names & {name for each in finer["choices"] for name in each}


def test_the_vectors_of_kinds_tell_apart_what_could_be_confused() -> None:
    """Kinds follow one another in the row of a label, and of each choice."""
    cases = VECTORS["label_inputs"][15:]
    assert [(case["rows"], case["kinds"], bool(case["start"])) for case in cases] == [
        *((3, 3, True), (3, 3, False), (6, 3, True), (6, 3, False)),
    ] * 2
    for case in cases[:4]:
        rows = np.array(case["sum_labels"]).reshape(case["rows"], 3, 3).any(axis=2)
        assert rows.any(axis=0).all(), "every kind is heard"
        assert rows.sum(axis=1).max() > 1, "one label has several kinds"
        assert (rows != rows[:, ::-1]).any()
        kinds = case["kinds_of_cells"]
        assert len(set(kinds)) < len(kinds), "two cells share a kind"
        assert kinds != sorted(kinds)
    tables = {json.dumps(case["sum_labels"]) for case in cases[:4]}
    assert len(tables) == 4


def test_rounding() -> None:
    for case in VECTORS["rounded"]:
        vector = [[Fraction(x) for x in row] for row in case["vector"]]
        entries = sum(len(row) for row in vector)
        assert math.isclose(case["unit_steps"], textbook.steps_of_one(entries), rel_tol=1e-15)
        assert textbook.rounded(vector, [1]) == case["steps"]
        assert quantized(np.array(case["vector"])).tolist() == case["steps"]
    long = [[Fraction(x) for x in row] for row in VECTORS["too_long"]]
    assert sum(x * x for row in textbook.rounded(long, [1]) for x in row) > 2**24
    with pytest.raises(InvalidInputError, match="at most 1 long"):
        quantized(np.array(VECTORS["too_long"]))


@pytest.mark.parametrize("case", VECTORS["noise"], ids=lambda case: f"{case['variance']:g}")
def test_a_noise_share(case: dict[str, Any]) -> None:
    variance, shares = case["variance"], case["shares"]
    assert case["rate"] == variance / (2 * shares)
    least, table = textbook.poisson_table(case["rate"])
    assert (least, least + len(table) - 1) == (case["least"], case["largest"])
    for place, threshold in case["thresholds"].items():
        assert table[int(place) - least] == int(threshold, 16)
    ours = noise._poisson_table(case["rate"])
    assert [ours.above.value(i) for i in range(len(table))] == table
    for bits, bound in case["bounds"].items():
        probability = Fraction(1, 2 ** int(bits))
        assert textbook.share_bound(case["rate"], probability) == bound


@pytest.mark.parametrize("case", VECTORS["sums"], ids=lambda case: case["part"])
def test_noise_bound_and_distances_of_a_sum(case: dict[str, Any]) -> None:
    given = case["parameters"]
    crowd = math.ceil(round((1 - given["dropout"] - given["corrupted"]) * given["phones"], 6))
    assert case["honest_survivors"] == min(crowd, given.get("noise_crowd", 10_000))
    labels = case["part"] == "labels"
    columns = given["start"]["dimensions"] + labels  # the last of a label counts
    rows = given["rows"] * given.get("kinds", 1) if labels else given["most_cells"]
    shape = [rows, columns]
    assert case["sum"]["shape"] == shape
    entries = math.prod(shape)
    multiplier = given["labels_noise" if labels else "cells_noise"]
    assert case["variance"] == (multiplier * textbook.STEPS) ** 2
    # A recording adds to its label's row, and to its choice's where choices have rows.
    added_to = 2 if labels and given["rows"] > len(given["labels"]) else 1
    length, added = 4096 - math.sqrt(entries) / 2, math.sqrt(added_to * columns)
    several = length * 2 / math.sqrt(5) + math.sqrt(entries)
    for unit, far in (("phone", 4096.0), ("recording", max(4096, length + added, several))):
        assert case["distances"][unit]["l2"] == pytest.approx(far, rel=1e-12)
        assert case["distances"][unit]["l1"] == pytest.approx(far * math.sqrt(entries), rel=1e-12)
    probability = Fraction(2.0**-80 / (given["phones"] * entries))
    rate = case["variance"] / (2 * case["honest_survivors"])
    assert case["sum"]["bound"] == textbook.STEPS + textbook.share_bound(rate, probability)
    parameters = msgspec.convert(given, AnyParameters)
    part = parameters.plan().part(case["part"])
    assert isinstance(part, SecureSum)
    assert isinstance(part.mechanism, VectorSum)
    for unit in ("phone", "recording"):
        ours = part.mechanism.event(Unit(unit))
        assert {"l1": ours.l1, "l2": ours.l2} == pytest.approx(case["distances"][unit])
    derived = parameters.sum_parameters(part, tuple(shape))
    assert msgspec.to_builtins(derived) == case["sum"] | {"shape": tuple(shape)}
