"""Start centroids: what a card keeps of them, what is read, and what is refused."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from support.examples import examples
from support.refusals import refused

from earshot_protocol import encoder_file
from earshot_protocol.encoder_file import DIMENSIONS, DamagedEncoderError
from earshot_protocol.errors import InvalidInputError, LocalError
from earshot_protocol.start_centroids import (
    MOST,
    USUAL_COUNTS,
    USUAL_DIMENSIONS,
    CentroidSet,
    MissingCentroidsError,
    chosen,
)

MODEL = bytes(range(256)) * 20
ONES = [1.0] * DIMENSIONS


def unit(count: int, dimensions: int, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(count, dimensions))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def packed(*centroids: np.ndarray) -> bytes:
    return encoder_file.pack(
        MODEL, "test-1", True, ONES, ONES, {}, "by us", start_centroids=centroids
    )


def with_sets(*sets: Any) -> bytes:
    """A file whose card has these start centroids, whatever they are; None: the key is missing."""
    data = packed()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        card = json.loads(archive.read("encoder.json"))
    card["start_centroids"] = list(sets)
    if sets == (None,):
        del card["start_centroids"]
    file = io.BytesIO()
    file.write(MODEL)
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("encoder.json", json.dumps(card))
        archive.writestr("CREDITS.txt", "by us")
    return file.getvalue()


def stored(**changes: Any) -> dict[str, Any]:
    """Ten in eight dimensions, and what else is said of them."""
    return {**msgspec.to_builtins(CentroidSet.of(unit(10, 8))), **changes}


def base64(rows: np.ndarray) -> Any:
    return msgspec.to_builtins(rows.astype("<i2").tobytes())


@settings(max_examples=examples(25))
@given(
    arrays.arrays(
        np.float64,
        st.tuples(st.integers(1, 40), st.integers(1, 128)),
        elements=st.floats(-1e3, 1e3, allow_nan=False).map(lambda x: 0.0 if abs(x) < 1e-3 else x),
    )
)
def test_directions_come_back_within_rounding_and_are_read_without_a_flaw(rows: np.ndarray) -> None:
    if not rows.any(axis=1).all():
        with pytest.raises(InvalidInputError, match="none may be zero"):
            CentroidSet.of(rows)
        return
    kept = CentroidSet.of(rows)
    found = kept.centroids()
    assert (found.dtype, found.shape) == (np.float32, rows.shape)
    assert kept.flaw(DIMENSIONS) is None
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    expected = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, atol=4e-4)
    np.testing.assert_allclose(CentroidSet.of(found).centroids(), found, atol=2e-4)


def test_a_file_gives_back_what_was_packed() -> None:
    sets = [unit(k, d) for d in USUAL_DIMENSIONS for k in USUAL_COUNTS]
    data = packed(*sets)
    assert data == packed(*sets)
    assert len(data) - len(packed()) < 24_000  # of a file's budget of a million
    file = encoder_file.read(data)
    for rows in sets:
        count, dimensions = rows.shape
        found = file.start_centroids(dimensions, count)
        np.testing.assert_allclose(found, rows, atol=1e-4)
        found[:] = 0  # the caller's own
        assert file.start_centroids(dimensions, count).any()


def test_an_assignment_to_the_nearest_survives_the_rounding() -> None:
    rows = unit(40, 32)
    found = encoder_file.read(packed(rows)).start_centroids(32, 40)
    points = unit(2000, 32, seed=1)
    exact, kept = points @ rows.T, points @ found.T
    assert np.abs(exact - kept).max() < 2e-4
    assert np.mean(exact.argmax(axis=1) == kept.argmax(axis=1)) > 0.998


class CardOfEarlierVersions(msgspec.Struct, frozen=True, kw_only=True):
    """What read format 1 before there were start centroids."""

    format: int
    name: str
    dimensions: int
    sha256: str
    length: int
    quantization: str
    features: str
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    trained: dict[str, str | int | float | bool | None] = {}


def test_earlier_files_are_read_and_earlier_versions_read_this_one() -> None:
    file = encoder_file.read(with_sets(None))
    assert file == encoder_file.read(packed())
    assert file.card.start_centroids == ()
    with zipfile.ZipFile(io.BytesIO(packed(unit(20, 16)))) as archive:
        earlier = msgspec.json.decode(archive.read("encoder.json"), type=CardOfEarlierVersions)
    assert (earlier.format, earlier.name, len(earlier.mean)) == (1, "test-1", DIMENSIONS)


def read(*sets: Any) -> None:
    encoder_file.read(with_sets(*sets))


test_damaged_centroids_are_named = refused(
    DamagedEncoderError,
    ("cannot be read", read, stored(rows="%%%")),
    ("cannot be read", read, stored(rows=[1, 2])),
    ("cannot be read", read, stored(count="ten")),
    ("cannot be read", read, "10 in 8"),
    (r"\(20 in 8 dimensions\) must have 320 bytes, not 160", read, stored(count=20)),
    ("must have 160 bytes, not 0", read, stored(rows="")),
    (f"1 to {MOST} in 1 to 128", read, stored(count=0, rows="")),
    ("1 to", read, stored(count=-10)),
    ("in 1 to 128 dimensions", read, stored(dimensions=-8)),
    ("1 to", read, stored(count=10**9, dimensions=10**9)),
    ("in 1 to 128 dimensions", read, stored(count=5, dimensions=129)),
    ("length 1; one is off by 1", read, stored(rows=base64(np.zeros((10, 8))))),
    ("length 1; one is off by 1.8", read, stored(rows=base64(np.full((10, 8), 32767)))),
    ("off by 0.00021", read, stored(rows=base64(np.eye(8)[[0] * 10] * 32760))),
    ("must occur only once", read, stored(), stored()),
)


def test_what_cannot_be_centroids_is_not_packed() -> None:
    bad = [np.ones(8), np.ones((0, 8)), np.ones((10, 0)), np.ones((MOST + 1, 2))]
    for rows in bad:
        with pytest.raises(InvalidInputError, match=r"must have shape \(1 to 1024, dimensions\)"):
            packed(rows)
    assert packed(1e300 * unit(10, 8)) == packed(unit(10, 8)) == packed(1e-300 * unit(10, 8))
    for value in (0.0, np.nan, np.inf):
        rows = unit(10, 8)
        rows[3] = value
        with pytest.raises(InvalidInputError, match="finite and none may be zero"):
            packed(rows)


def test_missing_centroids_are_named_with_what_there_is() -> None:
    file = encoder_file.read(packed(unit(10, 8), unit(20, 16)))
    for dimensions, count in ((8, 20), (16, 10), (20, 16), (0, 0), (-1, 10)):
        said = f"'test-1' has no {count} start centroids in {dimensions} dimensions; it has 10 in 8"
        with pytest.raises(MissingCentroidsError, match=said + ", 20 in 16.* choose from"):
            file.start_centroids(dimensions, count)
    with pytest.raises(MissingCentroidsError, match=r"at all.* have 10, 20 and .*: take one"):
        chosen((), "test-1", 16, 20)
    assert issubclass(MissingCentroidsError, LocalError)
