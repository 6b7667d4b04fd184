"""The published vectors of sums over cells, against a phone written from the document alone."""

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
from earshot_protocol.voting.vectors import quantized

_precise = digits(80)
VECTORS = json.loads(
    (Path(__file__).resolve().parents[2] / "docs" / "vectors" / "cells.json").read_text("utf-8")
)


@pytest.mark.parametrize("case", VECTORS["inputs"])
def test_what_a_phone_puts_into_a_sum(case: dict[str, Any]) -> None:
    centroids = case["centroids"] or textbook.start_rows(case["start"])
    centroids = [[textbook.float32(x) for x in row] for row in centroids]
    points, labels = case["points"], case["labels"]
    assert textbook.cells_input(points, centroids, case["most_cells"]) == case["sum_cells"]
    table = textbook.labels_input(
        points, labels, centroids, case["label_names"], case["most_cells"]
    )
    assert table == case["label_cells"]
    for made in (case["sum_cells"], case["label_cells"]):
        assert sum(x * x for row in made for x in row) <= 2**24


def test_the_vectors_tell_apart_what_could_be_confused() -> None:
    """Start, moved and further cells, a recording in another cell, an empty cell and phone."""
    full, moved, grown, *_, empty = VECTORS["inputs"]
    assert full["sum_cells"] != moved["sum_cells"] != grown["sum_cells"]
    assert len(moved["centroids"]) < len(grown["centroids"]) < grown["most_cells"]
    assert {len(case["sum_cells"]) for case in VECTORS["inputs"]} == {grown["most_cells"]}
    assert [0, 0] in full["sum_cells"]
    assert not np.any(empty["sum_cells"])
    assert len({json.dumps(case["sum_cells"]) for case in VECTORS["inputs"]}) == 5


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
    columns = len(given["labels"]) if labels else given["start"]["dimensions"]
    shape = [given["most_cells"], columns]
    assert case["sum"]["shape"] == shape
    entries = math.prod(shape)
    multiplier = given["labels_noise" if labels else "cells_noise"]
    assert case["variance"] == (multiplier * textbook.STEPS) ** 2
    length, added = 4096 - math.sqrt(entries) / 2, math.sqrt(1 if labels else columns)
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
    derived = parameters.sum_parameters(part, tuple(shape))
    assert msgspec.to_builtins(derived) == case["sum"] | {"shape": tuple(shape)}
