"""Encoders that come with every phone, known by name; one of them is the default."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from support.parameters import learning_parameters

from earshot_client import Phone, Policy
from earshot_client import encoder as encoders
from earshot_client.encoder import (
    default_encoder,
    encoder_path,
    open_encoder,
    shipped_encoder,
)
from earshot_protocol import encoder_file, shipped_encoders
from earshot_protocol.encoder_file import DamagedEncoderError
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.learning import Cluster
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER, SHIPPED_ENCODERS

DATA = resources.files("earshot_protocol") / "data"
KEY = bytes(range(32))
RATE = 8000
OTHER = "better-2"


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The default and another in the table and beside each other, as a release brings them."""
    folder = tmp_path / "data"
    folder.mkdir()
    first = encoder_path("contrast-1").read_bytes()
    read = encoder_file.read(first)
    card = read.card
    second = encoder_file.pack(
        read.model, OTHER, card.quantization == "int8", card.mean, card.scale, {}, "nobody"
    )
    (folder / "contrast-1.tflite").write_bytes(first)
    (folder / f"{OTHER}.tflite").write_bytes(second)
    table = {
        "contrast-1": SHIPPED_ENCODERS["contrast-1"],
        OTHER: hashlib.sha256(second).hexdigest(),
    }
    for module in (encoders, shipped_encoders):
        monkeypatch.setattr(module, "SHIPPED_ENCODERS", table)
    monkeypatch.setattr(encoders, "DEFAULT_ENCODER", "contrast-1")
    monkeypatch.setattr(shipped_encoders, "_DATA", folder)
    shipped_encoder.cache_clear()
    yield
    shipped_encoder.cache_clear()


def test_every_file_is_in_the_table_and_every_name_has_a_file() -> None:
    files = {each.name for each in DATA.iterdir()}
    names = {f"{name}{end}" for name in SHIPPED_ENCODERS for end in (".tflite", "-credits.txt")}
    assert files == names
    assert DEFAULT_ENCODER in SHIPPED_ENCODERS


@pytest.mark.parametrize("name", SHIPPED_ENCODERS)
def test_a_shipped_file_is_small_and_says_what_it_is(name: str) -> None:
    data = encoder_path(name).read_bytes()
    assert len(data) <= 2**20
    file = encoder_file.read(data)
    assert file.card.name == name
    assert "ESC-10" in str(file.card.trained["sound"])
    for credits_ in (file.credits, (DATA / f"{name}-credits.txt").read_text()):
        for word in ("ESC-10", "freesound", "CC0"):
            assert word in credits_
    assert open_encoder(name).name == name
    assert open_encoder(name) is open_encoder(name)


def test_contrast_1_stays_what_it_was() -> None:
    """Phones hold embeddings of it, and phases may ask for it."""
    assert SHIPPED_ENCODERS["contrast-1"].startswith("622142b15ef98273")
    assert "CC BY-SA 4.0" in (DATA / "contrast-1-credits.txt").read_text()
    assert open_encoder("contrast-1").name == "contrast-1"


def test_a_name_means_the_shipped_encoder_and_a_path_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / DEFAULT_ENCODER).write_bytes(b"somebody's notes")
    monkeypatch.chdir(tmp_path)
    assert open_encoder(DEFAULT_ENCODER) is default_encoder() is open_encoder()
    assert encoder_path(DEFAULT_ENCODER) == encoder_path() != Path(DEFAULT_ENCODER)
    assert encoder_path(f"./{DEFAULT_ENCODER}") == Path(DEFAULT_ENCODER)
    for file in (f"./{DEFAULT_ENCODER}", Path(DEFAULT_ENCODER)):
        with pytest.raises(DamagedEncoderError, match="not an encoder file"):
            open_encoder(file)


@pytest.mark.parametrize("name", ["contrast-0", "Contrast-1", "contrast-1 ", "", "../contrast-1"])
def test_an_unknown_name_says_which_are_known(name: str) -> None:
    known = ", ".join(SHIPPED_ENCODERS)
    with pytest.raises(
        DamagedEncoderError, match=rf"cannot be read.*or a shipped encoder: {known}"
    ):
        open_encoder(name)
    with pytest.raises(DamagedEncoderError, match=rf"no encoder '{name}'.*it has: {known}"):
        shipped_encoder(name)


@pytest.mark.usefixtures("two")
def test_a_changed_or_missing_file_is_noticed() -> None:
    for harm in (lambda file: file.write_bytes(file.read_bytes() + b"\0"), Path.unlink):
        harm(shipped_encoders._DATA / f"{OTHER}.tflite")
        for read in (open_encoder, shipped_encoder, encoder_path):
            with pytest.raises(DamagedEncoderError, match=f"'{OTHER}' does not have .* reinstall"):
                read(OTHER)
    assert open_encoder("contrast-1").name == default_encoder().name  # nothing is wrong with it


@pytest.mark.usefixtures("two")
def test_another_default_starts_a_phone_anew_unless_it_is_told_its_encoder_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = np.random.default_rng(5).normal(0, 0.1, (4, RATE))
    parameters = learning_parameters(
        phones=100, geometry=Geometry.SPHERICAL, dimensions=8, encoder="contrast-1"
    )
    with Phone.open(tmp_path / "phone", key=KEY, policy=Policy.per_recording()) as phone:
        for second in sound:
            phone.hear(second, RATE)
        phone.answer(Cluster(phase=bytes(16), index=0, parameters=parameters))
        heard, ledger = phone._store.recordings()[0], phone.ledger.releases
    assert len(heard) == 4
    assert ledger == tuple(each.release for each in parameters.plan().expenses(0)[:4])

    monkeypatch.setattr(encoders, "DEFAULT_ENCODER", OTHER)
    assert default_encoder().name == OTHER
    with Phone.open(tmp_path / "phone", key=KEY, encoder="contrast-1") as phone:
        np.testing.assert_array_equal(phone._store.recordings()[0], heard)
        assert phone.ledger.releases == ledger
        phone.hear(sound[0], RATE)
        np.testing.assert_array_equal(phone._store.recordings()[0][-1], heard[0])
    with Phone.open(tmp_path / "phone", key=KEY) as phone:
        assert len(phone._store.recordings()[0]) == 0
        assert phone.ledger.releases == ledger
