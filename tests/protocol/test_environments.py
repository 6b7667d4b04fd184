"""The digest by which phone and server agree on a label hierarchy."""

from __future__ import annotations

import hashlib

import pytest
from support.parameters import learning_parameters

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


@pytest.mark.parametrize(
    ("digest", "choices", "reason"),
    [
        (b"", (("taxi",),), "1 of 2 labels"),
        (b"", (("taxi",), ("taxi",)), "belongs to one class"),
        (LabelHierarchy(GROUPS).digest, (), "digest"),
        (LabelHierarchy(GROUPS).digest, (("taxi",), ()), "digest"),
    ],
)
def test_a_phase_with_choices_that_do_not_fit_is_not_started(
    digest: bytes, choices: tuple[tuple[str, ...], ...], reason: str
) -> None:
    parameters = learning_parameters(labels=tuple(GROUPS), hierarchy=digest)
    with pytest.raises(InvalidParametersError, match=reason):
        StartPhase(parameters=parameters, choices=choices).agreed()


def test_labels_that_are_no_names_are_refused() -> None:
    with pytest.raises(InvalidParametersError, match="printable"):
        StartPhase(parameters=learning_parameters(labels=("bus", " park"))).agreed()
