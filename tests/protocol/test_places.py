"""Places that a phase agrees on: by which sound is named, and what is refused."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from support.endings import discovered, labelled
from support.parameters import statistics_parameters

from earshot_protocol.environments import LabelHierarchy
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.parameters import Embeddings
from earshot_protocol.phases.places import MOST_PLACES, UNNAMED, AgreedPlaces, Places, together
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


def at(*degrees: float) -> np.ndarray:
    angles = np.deg2rad(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def test_a_place_names_what_lies_within_its_radius() -> None:
    """By the angle alone, however long the vectors are; on the edge it still names."""
    far = 1 - np.cos(np.deg2rad(60))
    places = Places(3 * at(0, 90), ("bus", None), Geometry.SPHERICAL, float(far) + 1e-6)
    asked = 0.1 * at(44, 46, 150, 151, -60, -61)
    assert places.within(asked) == [0, 1, 1, None, 0, None]
    assert places.nearest(asked) == ["bus", None, None, None, "bus", None]
    assert places._replace(radius=None).within(asked) == [0, 1, 1, 1, 0, 0]
    exact = Places(at(0), ("bus",), Geometry.SPHERICAL, 0.0)
    assert exact.nearest(at(0, 1)) == ["bus", None]
    # What has no direction lies at a right angle to everything.
    assert places.nearest(np.zeros((1, 2), np.float32)) == [None]


def test_noise_that_turns_a_point_does_not_put_it_outside_of_its_place() -> None:
    """A cosine of 0.3 that noise has lowered by half was one of 0.6."""
    places = Places(at(0), ("bus",), Geometry.SPHERICAL, 0.5)
    turned = at(float(np.rad2deg(np.arccos(0.3))))
    assert places.within(turned) == [None]
    assert places.within(turned, 0.5) == [0]
    assert places.within(np.vstack([turned, turned]), np.array([0.5, 0.9])) == [0, None]


def test_without_any_place_everything_is_unknown() -> None:
    none = Places(np.empty((0, 2), np.float32), (), Geometry.SPHERICAL, None)
    assert none.within(at(0, 90)) == [None, None]
    assert none.nearest(at(0)) == [None]


def test_a_result_passes_its_radius_on() -> None:
    """Also to samples that were labelled since, and to the places of a phase."""
    found = discovered(radius=0.125)
    assert Places.of(found).radius == 0.125
    joined = together(found, labelled())
    assert joined is not None
    assert joined.radius == 0.125
    assert len(joined.points) == 2 + 3, "of the samples, two have names"
    assert joined.nearest(at(0, 90, 45)) == ["bus", "park", None]
    told = AgreedPlaces.of(joined, "points", LabelHierarchy.flat(("bus", "park")))
    assert told.radius == 0.125
    assert told.named(("bus", "park")).nearest(at(0, 90, 45)) == ["bus", "park", None]
    assert "radius" not in msgspec.msgpack.decode(msgspec.msgpack.encode(agreed()))


def test_labelled_samples_name_what_prototypes_may_not() -> None:
    noise = discovered(name_p_values=(1.0,) * 3, radius=0.125)
    assert Places.of(noise).nearest(at(0, 90)) == [None, None]
    joined = together(noise, labelled())
    assert joined is not None
    assert joined.nearest(at(0, 90, 45)) == ["bus", "park", None]
