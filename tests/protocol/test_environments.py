"""The digest by which phone and server agree on a label hierarchy."""

from __future__ import annotations

import functools
import hashlib
from typing import Any

import pytest
from support.parameters import learning_parameters
from support.refusals import refused

from earshot_protocol.api import StartPhase
from earshot_protocol.environments import LARGEST_CHOICES, LabelHierarchy, default_hierarchy
from earshot_protocol.errors import InvalidInputError, InvalidParametersError

GROUPS = {"car": ("taxi", "car park"), "sea": ()}


def test_digest_is_that_of_the_documented_bytes() -> None:
    # Arrays of 2 are 0x92, of 0 0x90; texts of n bytes 0xa0 + n.
    written = b"\x92" + b"\x92\xa3car\x92\xa4taxi\xa8car park" + b"\x92\xa3sea\x90"
    assert LabelHierarchy(GROUPS).digest == hashlib.sha256(written).digest()


def test_digest_tells_order_names_and_classes_apart() -> None:
    variants = [
        GROUPS,
        {"sea": (), "car": ("taxi", "car park")},
        {"car": ("car park", "taxi"), "sea": ()},
        {"car": ("taxi",), "sea": ("car park",)},
        {"car": ("taxi", "car park")},
        {"car": ("taxi", "Car park"), "sea": ()},
    ]
    assert len({LabelHierarchy(groups).digest for groups in variants}) == len(variants)
    assert LabelHierarchy(dict(GROUPS)).digest == LabelHierarchy(GROUPS).digest


def test_the_number_of_choices_is_limited() -> None:
    choices = tuple(f"choice {number}" for number in range(LARGEST_CHOICES))
    assert len(LabelHierarchy({"all": choices}).choices) == LARGEST_CHOICES
    with pytest.raises(InvalidInputError, match="4096 choices"):
        LabelHierarchy({"all": choices, "more": ("one",)})


def test_a_phase_is_started_with_the_digest_of_its_choices() -> None:
    hierarchy = default_hierarchy()
    choices = tuple(hierarchy.groups.values())
    parameters = learning_parameters(labels=hierarchy.classes)
    agreed = StartPhase(parameters=parameters, choices=choices).agreed()
    assert agreed.hierarchy == hierarchy.digest
    assert StartPhase(parameters=agreed, choices=choices).agreed() == agreed
    assert StartPhase(parameters=parameters).agreed() == parameters


def start(choices: tuple[tuple[str, ...], ...] = (), **changes: Any) -> None:
    StartPhase(parameters=learning_parameters(**changes), choices=choices).agreed()


LABELS = {"labels": tuple(GROUPS)}
AGREED = LABELS | {"hierarchy": LabelHierarchy(GROUPS).digest}

test_a_phase_with_choices_that_do_not_fit_is_not_started = refused(
    InvalidParametersError,
    ("1 of 2 labels", functools.partial(start, **LABELS), (("taxi",),)),
    ("belongs to one class", functools.partial(start, **LABELS), (("taxi",), ("taxi",))),
    ("digest", functools.partial(start, **AGREED)),
    ("digest", functools.partial(start, **AGREED), (("taxi",), ())),
    ("printable", functools.partial(start, labels=("bus", " park"))),
)
