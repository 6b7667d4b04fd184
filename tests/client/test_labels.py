from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot_client.labels import (
    LabelHierarchy,
    Poll,
    UnknownLabelError,
    default_hierarchy,
    label_counts,
)
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.parameters import LARGEST_LABELS

NAMES = st.text("abcdeé ", min_size=1, max_size=8).filter(lambda name: name == name.strip())


def test_default_hierarchy_is_a_figure_of_few_classes_and_many_choices() -> None:
    hierarchy = default_hierarchy()
    assert 8 <= len(hierarchy.classes) <= 12 < len(hierarchy.choices) < LARGEST_LABELS
    assert len(set(hierarchy.choices)) == len(hierarchy.choices)
    expected = {
        "train": "public transport",
        "traffic": "street",
        "siren": "street",
        "rain": "nature",
        "birds": "nature",
        "wind": "nature",
        "waves": "nature",
        "café": "gastronomy",
        "crowd": "event",
        "machine hum": "workshop",
    }
    assert {choice: hierarchy.class_of(choice) for choice in expected} == expected
    assert set(expected) <= set(hierarchy.choices)


@given(st.dictionaries(NAMES, st.lists(NAMES, max_size=4), min_size=1, max_size=5))
def test_a_hierarchy_is_a_partition_or_is_refused(groups: dict[str, list[str]]) -> None:
    owners: dict[str, set[str]] = {name: {name} for name in groups}
    for name, choices in groups.items():
        for choice in choices:
            owners.setdefault(choice, set()).add(name)
    frozen = {name: tuple(choices) for name, choices in groups.items()}
    if any(len(classes) > 1 for classes in owners.values()):
        with pytest.raises(InvalidInputError, match="belongs to one class"):
            LabelHierarchy(frozen)
        return
    hierarchy = LabelHierarchy(frozen)
    assert hierarchy.classes == tuple(groups)
    assert {name: {hierarchy.class_of(name)} for name in owners} == owners


@pytest.mark.parametrize(
    "groups",
    [
        {},
        {"": ("a",)},
        {"nature": ("",)},
        {"nature": ("x" * 65,)},
        {"x" * 65: ()},
        {"nature": (" rain",)},
        {"nature": ("ra\nin",)},
        {"nature": ("\ud800",)},
        {"nature": ("rain",), "weather": ("rain",)},
        {"nature": ("street",), "street": ()},
    ],
)
def test_bad_hierarchies_are_refused(groups: dict[str, tuple[str, ...]]) -> None:
    with pytest.raises(InvalidInputError):
        LabelHierarchy(groups)


def test_names_of_64_characters_are_accepted() -> None:
    assert LabelHierarchy({"x" * 64: ("y" * 64,)}).class_of("y" * 64) == "x" * 64


def test_unknown_choice_names_the_nearest_first_and_then_all_others() -> None:
    hierarchy = default_hierarchy()
    with pytest.raises(UnknownLabelError) as caught:
        hierarchy.class_of("Trian")
    accepted = str(caught.value).split("accepted: ")[1].split(", ")
    assert accepted[0] == "train"
    assert set(accepted) == set(hierarchy.choices) | set(hierarchy.classes)
    assert len(accepted) == len(set(accepted))
    with pytest.raises(UnknownLabelError, match=r"accepted: café"):
        hierarchy.class_of("Cafe")


def test_flat_labels_stand_for_themselves() -> None:
    labels = ("rain", "traffic", "café")
    hierarchy = LabelHierarchy.flat(labels)
    assert hierarchy.classes == hierarchy.choices == labels
    assert tuple(hierarchy.class_of(label) for label in labels) == labels
    with pytest.raises(InvalidInputError, match="repeat"):
        LabelHierarchy.flat(("rain", "rain"))


def test_a_hierarchy_cannot_be_changed_and_can_be_sent_to_another_process() -> None:
    source = {"nature": ("rain",)}
    hierarchy = LabelHierarchy(source)
    source["street"] = ("traffic",)
    assert hierarchy.classes == ("nature",)
    with pytest.raises(TypeError):
        hierarchy.groups["street"] = ()  # type: ignore[index]
    for twin in (pickle.loads(pickle.dumps(hierarchy)), copy.deepcopy(hierarchy)):  # noqa: S301
        assert twin == hierarchy
        assert twin.class_of("rain") == "nature"


def test_every_answer_to_a_poll_is_understood() -> None:
    hierarchy = default_hierarchy()
    poll = Poll.of(hierarchy)
    assert poll.question == "Where have you been?"
    for heading, choices in poll.groups.items():
        assert hierarchy.class_of(heading) == heading
        assert {hierarchy.class_of(choice) for choice in choices} == {heading}
    assert sum(map(len, poll.groups.values())) == len(hierarchy.choices)


@pytest.mark.parametrize("geometry", list(Geometry))
def test_label_counts_equal_a_count_by_hand(geometry: Geometry) -> None:
    random = np.random.default_rng(11)
    for recordings, centroids, total in ((0, 1, 1), (1, 3, 2), (40, 5, 4), (200, 7, 3)):
        points = random.normal(size=(recordings, 3)).astype(np.float32)
        places = random.normal(size=(centroids, 3)).astype(np.float32)
        labels = random.integers(-1, total, size=recordings).astype(np.int16)
        expected = np.zeros((centroids, total), dtype=np.int64)
        for point, label in zip(points.astype(float), labels, strict=True):
            if label == -1:
                continue
            if geometry is Geometry.EUCLIDEAN:
                distances = [float(((point - place) ** 2).sum()) for place in places]
            else:
                distances = [-float(point @ place / np.linalg.norm(place)) for place in places]
            expected[int(np.argmin(distances)), label] += 1
        counted = label_counts(points, labels, places, total, geometry)
        assert counted.dtype == np.int64
        np.testing.assert_array_equal(counted, expected)


def test_label_counts_hold_more_cells_than_an_int16() -> None:
    places = np.arange(300.0)[:, None]
    counted = label_counts(
        np.array([[299.0]]), np.array([255], dtype=np.int16), places, 256, Geometry.EUCLIDEAN
    )
    assert counted[299, 255] == counted.sum() == 1


def test_unlabelled_recordings_are_not_counted() -> None:
    points = np.ones((5, 2), dtype=np.float32)
    counted = label_counts(points, np.full(5, -1, np.int16), points[:2], 3, Geometry.EUCLIDEAN)
    assert counted.shape == (2, 3)
    assert not counted.any()


@pytest.mark.parametrize(
    ("points", "labels", "centroids", "total"),
    [
        (np.ones((2, 2)), np.zeros(3, np.int16), np.ones((1, 2)), 1),
        (np.ones((2, 2)), np.zeros((2, 1), np.int16), np.ones((1, 2)), 1),
        (np.ones((2, 2)), np.zeros(2), np.ones((1, 2)), 1),
        (np.ones((2, 2)), np.array([0, 1]), np.ones((1, 2)), 1),
        (np.ones((2, 2)), np.array([0, -2]), np.ones((1, 2)), 1),
        (np.ones((2, 2)), np.array([-1, -1]), np.ones((1, 2)), 0),
        (np.ones((2, 2)), np.array([0, 0]), np.ones((0, 2)), 1),
        (np.ones((2, 2)), np.array([-1, -1]), np.ones((0, 2)), 1),
        (np.ones((2, 2)), np.array([0, 0]), np.ones((1, 3)), 1),
        (np.ones(2), np.array([0, 0]), np.ones((1, 2)), 1),
    ],
)
def test_label_counts_refuse_what_does_not_fit(
    points: np.ndarray, labels: np.ndarray, centroids: np.ndarray, total: int
) -> None:
    with pytest.raises(InvalidInputError):
        label_counts(points, labels, centroids, total, Geometry.EUCLIDEAN)
