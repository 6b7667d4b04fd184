"""The encoder file: what is read, and what is refused."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earshot_protocol.encoder_file import (
    CARD,
    CREDITS,
    DIMENSIONS,
    MOST_BYTES,
    DamagedEncoderError,
    pack,
    read,
)
from earshot_protocol.spectrum import NARROW, WIDE, Spectrum

MODEL = bytes(range(256)) * 20
TEXT = "".join(f"package\tpackage/sound_{number}.ogg\tCC BY-SA 3.0\n" for number in range(40))
"""Credits that are worth compressing, with more than literals in them."""


def card(**changes: Any) -> dict[str, Any]:
    return {
        "format": 1,
        "name": "test-1",
        "dimensions": DIMENSIONS,
        "sha256": hashlib.sha256(MODEL).hexdigest(),
        "length": len(MODEL),
        "quantization": "int8",
        "features": NARROW.features,
        "mean": [0.0] * DIMENSIONS,
        "scale": [1.0] * DIMENSIONS,
        "trained": {"seed": 1},
        **changes,
    }


def written(
    card_: object = None,
    model: bytes = MODEL,
    names: tuple[str, str] = (CARD, CREDITS),
    credits_: str = "credits where due",
    method: int = zipfile.ZIP_STORED,
) -> bytes:
    file = io.BytesIO()
    file.write(model)
    text = card_ if isinstance(card_, bytes) else json.dumps(card_ or card()).encode()
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr(names[0], text)
        archive.writestr(names[1], credits_, method)
    return file.getvalue()


def test_it_reads_what_was_written() -> None:
    file = read(written())
    assert file.model == MODEL
    assert file.card.name == "test-1"
    assert file.credits == "credits where due"
    np.testing.assert_array_equal(file.scale(), np.ones(DIMENSIONS, np.float32))
    np.testing.assert_array_equal(file.mean(), np.zeros(DIMENSIONS, np.float32))


@pytest.mark.parametrize("spectrum", [NARROW, WIDE])
def test_the_card_says_what_the_network_is_given(spectrum: Spectrum) -> None:
    numbers = [1.0] * DIMENSIONS
    data = pack(MODEL, "wide", True, numbers, numbers, {}, "", spectrum=spectrum)
    assert read(data).spectrum == spectrum
    assert read(data).card.features == f"log-mel 61x64 at {spectrum.rate // 1000} kHz, unit rms"


def test_long_credits_take_little_of_what_a_phone_carries() -> None:
    numbers = [1.0] * DIMENSIONS
    short, long = (pack(MODEL, "c", True, numbers, numbers, {}, said) for said in ("", TEXT))
    assert read(long).credits == TEXT
    assert len(long) - len(short) < len(TEXT) / 5


@pytest.mark.parametrize("name", [CARD, CREDITS])
def test_an_entry_that_would_fill_the_memory_is_not_unpacked(name: str) -> None:
    filled = {CARD: json.dumps(card()), CREDITS: "due"}
    filled[name] += " " * (MOST_BYTES + 1 - len(filled[name]))
    file = io.BytesIO(MODEL)
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive:
        for each, text in filled.items():
            archive.writestr(each, text)
    assert len(file.getvalue()) < MOST_BYTES / 100
    with pytest.raises(DamagedEncoderError, match="at most 16 MiB"):
        read(file.getvalue())


def test_it_packs_what_the_format_says() -> None:
    given = {"mean": [0.1234567891] * DIMENSIONS, "scale": [1.0000049] * DIMENSIONS}
    data = pack(
        MODEL, name="test-1", int8=True, **given, trained={"seed": 1}, credits_="credits where due"
    )
    assert read(data) == read(written(card(mean=[0.1234568] * DIMENSIONS)))
    assert data.startswith(MODEL)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.namelist() == ["encoder.json", "CREDITS.txt"]
        assert archive.testzip() is None
        # No clock shows: equal content makes equal files.
        assert {entry.date_time[:3] for entry in archive.infolist()} == {(1980, 1, 1)}
        keys = list(json.loads(archive.read("encoder.json")))
        assert keys == [*card(), "start_centroids"]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not an encoder file"),
        (MODEL, "not an encoder file"),
        (written(names=("other.json", CREDITS)), CARD),
        (written(names=(CARD, "other.txt")), CREDITS),
        (written(b"{"), "cannot be read"),
        (written(b"\xff\xfe"), "cannot be read"),
        (written(card(sha256=3)), "cannot be read"),
        (written(card(sha256="é" * 64)), "cannot be read"),
        (written(card(features="\x1b[2J")), "cannot be read"),
        (written(card(quantization="int4")), "cannot be read"),
        (written(card(format=2)), "format 2"),
        (written(card(features="mfcc")), "mfcc"),
        (written(card(dimensions=64)), "128 dimensions"),
        (written(card(mean=[0.0])), "128 dimensions"),
        (written(card(scale=[1.0] * 127)), "128 dimensions"),
        (written(card(name="")), "name"),
        (written(card(name="x" * 65)), "1 to 64"),
        (written(card(name="two\nlines")), "printable"),
        (written(card(length=-1)), "length"),
        (written(card(length=len(MODEL) - 1)), "not the one"),
        (written(card(length=10**9)), "not the one"),
        (written(card(sha256="0" * 64)), "not the one"),
        (written(model=MODEL[:-1] + b"!"), "not the one"),
        (bytes(MOST_BYTES + 2**19), "at most 16 MiB, this one has 16.5 MiB"),
    ],
    ids=range(24),
)
def test_damage_is_named(data: bytes, said: str) -> None:
    with pytest.raises(DamagedEncoderError, match=said):
        read(data)


@given(cut=st.integers(1, 4000))
@settings(max_examples=60, deadline=None)
def test_a_truncated_file_is_refused(cut: int) -> None:
    with pytest.raises(DamagedEncoderError):
        read(written()[:-cut])


@given(place=st.integers(0, len(MODEL) - 1), bit=st.integers(0, 7))
@settings(max_examples=60, deadline=None)
def test_a_flipped_bit_of_the_model_is_noticed(place: int, bit: int) -> None:
    damaged = bytearray(written())
    damaged[place] ^= 1 << bit
    with pytest.raises(DamagedEncoderError, match="not the one"):
        read(bytes(damaged))


@given(data=st.data(), method=st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
@settings(max_examples=100, deadline=None)
def test_a_flipped_bit_behind_the_model_is_refused_or_harmless(
    data: st.DataObject, method: int
) -> None:
    whole = written(credits_=TEXT, method=method)
    place = data.draw(st.integers(len(MODEL), len(whole) - 1))
    damaged = bytearray(whole)
    damaged[place] ^= 1 << data.draw(st.integers(0, 7))
    try:
        found = read(bytes(damaged))
    except DamagedEncoderError:
        return
    # The archive's own check sums cover what the entries hold; times and flags do not matter.
    assert found == read(whole)
