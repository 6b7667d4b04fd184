"""The published vectors of sums of contacts, against a phone written from the document alone."""

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

from earshot_protocol.messages import AnyParameters
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.voting.vectors import projected, quantized

_precise = digits(80)
VECTORS = json.loads(
    (Path(__file__).resolve().parents[2] / "docs" / "vectors" / "contacts.json").read_text("utf-8")
)


def entry_of(contact: dict[str, Any], case: dict[str, Any]) -> int:
    """The entry of a contact: its label's, that of the nearest place's label, or the last one."""
    given, labels = case["parameters"], case["parameters"]["labels"]
    label_of = {name: at for at, each in enumerate(case["choices"]) for name in each}
    label_of |= {name: at for at, name in enumerate(labels)}
    unknown = 2 * len(labels)
    if contact["choice"] is not None:
        return label_of.get(contact["choice"], unknown)
    name = name_of(contact, given)
    return unknown if name is None else len(labels) + name


def name_of(contact: dict[str, Any], given: dict[str, Any]) -> int | None:
    """The number of the label of the nearest place; None if none is near or named."""
    if "places" not in given:
        return None
    places = [[1.0, 0.0], [0.6, 0.8]]  # those of the vectors, by hand
    cosines = [
        (contact["point"][0] * x + contact["point"][1] * y) / math.hypot(*contact["point"])
        for x, y in places
    ]
    best = cosines.index(max(cosines))
    label = given["places"]["labels"][best]
    near = 1 - cosines[best] <= given["places"]["radius"]
    return int(label) if near and label >= 0 else None


def confusion_of(case: dict[str, Any]) -> tuple[list[list[int]], list[int]]:
    """Labelled contacts of any day by label and name, and by label alone."""
    labels = len(case["parameters"]["labels"])
    table, labelled = [[0] * labels for _ in range(labels)], [0] * labels
    for contact in case["contacts"]:
        label, name = entry_of(contact, case), name_of(contact, case["parameters"])
        if contact["choice"] is None or label >= labels:
            continue
        labelled[label] += 1
        if name is not None:
            table[label][name] += 1
    return table, labelled


def in_window(contact: dict[str, Any], given: dict[str, Any]) -> bool:
    if "since" not in given:
        return True
    return contact["day"] is not None and given["since"] <= contact["day"] < given["until"]


@pytest.mark.parametrize("case", VECTORS["inputs"])
def test_what_a_phone_puts_into_a_sum_and_what_it_marks(case: dict[str, Any]) -> None:
    given = case["parameters"]
    counts = [0] * (2 * len(given["labels"]) + 1)
    marked = []
    for at, contact in enumerate(case["contacts"]):
        if contact["counted"]:
            marked.append(at)
        elif in_window(contact, given):
            marked.append(at)
            counts[entry_of(contact, case)] += 1
    if given.get("confusion"):
        wanted = textbook.with_confusion(counts, given["contacts"], *confusion_of(case))
        assert case["input"] == wanted
        assert case["counted"] == marked
        return
    assert case["input"] == textbook.projected(counts, given["contacts"])
    assert case["counted"] == marked
    assert sum(x * x for x in case["input"]) <= textbook.STEPS**2
    assert quantized(projected(np.array(counts), given["contacts"])).tolist() == case["input"]


def test_the_vectors_have_every_kind_of_contact() -> None:
    """Labelled, named and unknown ones, counted before, outside the window, and too many."""
    first, *_ = VECTORS["inputs"]
    entries = {entry_of(contact, first) for contact in first["contacts"]}
    assert entries == {0, 2, 4, 6}
    assert any(not in_window(contact, first["parameters"]) for contact in first["contacts"])
    assert {len(case["contacts"]) for case in VECTORS["inputs"]} == {0, 1, 2, 11, 80}


@pytest.mark.parametrize("case", VECTORS["sums"])
def test_what_a_phone_derives_of_a_sum(case: dict[str, Any]) -> None:
    given, entries = case["parameters"], case["sum"]["length"]
    labels, confusion = len(given["labels"]), bool(given.get("confusion"))
    assert entries == 2 * labels + 1 + confusion * labels**2
    crowd = math.ceil((1 - given["dropout"] - given["corrupted"]) * given["phones"] - 5e-7)
    assert case["honest_survivors"] == crowd
    assert case["variance"] == (given["noise"] * textbook.STEPS) ** 2
    unit = textbook.STEPS - math.sqrt(entries) / 2
    moved = 1 / given["contacts"]
    one = min(textbook.STEPS, unit * moved + math.sqrt(entries))
    if confusion:  # a recording moves counts by 1/B and the matrix by 1
        one = unit * math.sqrt((moved**2 + 1) / 2) + math.sqrt(entries)
    for name, far in (("phone", textbook.STEPS), ("recording", one)):
        assert case["distances"][name]["l2"] == pytest.approx(far, rel=1e-12)
        assert case["distances"][name]["l1"] == pytest.approx(far * math.sqrt(entries), rel=1e-12)
    probability = Fraction(2.0**-80 / (given["phones"] * entries))
    rate = case["variance"] / (2 * case["honest_survivors"])
    assert case["sum"]["bound"] == textbook.STEPS + textbook.share_bound(rate, probability)
    part = msgspec.convert(given, AnyParameters).plan().part(case["part"])
    assert isinstance(part, SecureSum)
    for name in ("phone", "recording"):
        ours = part.mechanism.event(Unit(name))
        assert {"l1": ours.l1, "l2": ours.l2} == pytest.approx(case["distances"][name])
