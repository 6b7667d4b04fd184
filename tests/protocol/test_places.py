"""Places that a phase agrees on: by which sound is named, and what is refused."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from support.parameters import statistics_parameters

from earshot_protocol.environments import LabelHierarchy
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.parameters import Embeddings
from earshot_protocol.phases.places import MOST_PLACES, UNNAMED, AgreedPlaces, Places
from earshot_protocol.wire import LARGEST_DIMENSIONS, Matrix

HIERARCHY = LabelHierarchy({"transport": ("bus", "train"), "park": ()})


def agreed(labels: tuple[int, ...] = (0, 1), centroids: Matrix | None = None) -> AgreedPlaces:
    return AgreedPlaces(
        encoder="points",
        geometry=Geometry.SPHERICAL,
        centroids=Matrix.of(np.eye(2)) if centroids is None else centroids,
        labels=labels,
    )


def zeros(rows: int, columns: int) -> Matrix:
    return Matrix(rows, columns, bytes(4 * rows * columns))


@pytest.mark.parametrize(
    ("places", "said"),
    [
        (agreed((0,)), "1 labels up to number 0; one of 2 labels is needed for each of 2 places"),
        (agreed((0, 1, 0)), "3 labels up to number 1"),
        (agreed((0, 2)), "2 labels up to number 2"),
        (agreed((), zeros(0, 2)), "places: 0 of 2 dimensions; 1 to 4096 of at most 1024"),
        (agreed((0,) * (MOST_PLACES + 1), zeros(MOST_PLACES + 1, 1)), "places: 4097 of 1 dim"),
        (agreed((0,), zeros(1, LARGEST_DIMENSIONS + 1)), "places: 1 of 1025 dimensions"),
        (agreed(centroids=Matrix(2, 2, b"1234")), "places: "),
        (agreed(centroids=Matrix(2, 2, b"\xff\xff\xff\x7f" * 4)), "places: "),
    ],
)
def test_places_by_which_nothing_can_be_named_are_refused(places: AgreedPlaces, said: str) -> None:
    with pytest.raises(InvalidParametersError, match=said):
        places.check(2)
    with pytest.raises(InvalidParametersError, match=said):
        statistics_parameters(places=places).check()


def test_the_largest_places_and_unnamed_ones_are_accepted() -> None:
    agreed((0,) * MOST_PLACES, zeros(MOST_PLACES, 1)).check(1)
    agreed((0,), zeros(1, LARGEST_DIMENSIONS)).check(1)
    agreed((UNNAMED, UNNAMED)).check(1)
    statistics_parameters(places=agreed((UNNAMED, 1))).check()


def test_a_phase_is_about_the_embeddings_of_its_places() -> None:
    assert statistics_parameters().reads is None
    wide = agreed((0,), zeros(1, 7))
    assert statistics_parameters(places=wide).reads == Embeddings("points", 7)


def test_names_become_the_labels_that_they_stand_for() -> None:
    names = ("train", "transport", "office", None, "park")
    points = np.eye(5, 6, dtype=np.float32)
    made = AgreedPlaces.of(Places(points, names, Geometry.EUCLIDEAN), "points", HIERARCHY)
    assert made.labels == (0, 0, UNNAMED, UNNAMED, 1)
    received = msgspec.msgpack.decode(msgspec.msgpack.encode(made), type=AgreedPlaces)
    assert received == made
    named = received.named(HIERARCHY.classes)
    assert (named.names, named.geometry) == (
        ("transport", "transport", None, None, "park"),
        Geometry.EUCLIDEAN,
    )
    assert named.nearest(points) == list(named.names)
