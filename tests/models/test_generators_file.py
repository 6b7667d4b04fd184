"""Files of generators: what goes in comes out, and nothing else is let in."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import compiling  # noqa: F401  # programs are compiled in half the time

from earshot_models.generators import generator_file, leaves_file
from earshot_models.generators.generator import Generator
from earshot_models.generators.leaves_file import DamagedFileError, OtherShapeError
from earshot_models.generators.networks import Decoder
from earshot_models.generators.origin import NOT_PRIVATE, PUBLIC, Origin, OriginKind, private
from earshot_models.generators.settings import GeneratorSettings, Network
from earshot_protocol.errors import InvalidInputError, InvalidParametersError

SETTINGS = GeneratorSettings(width=8, latent=2, steps=1, batch=2)


def made(origin: Origin = PUBLIC, network: Network = Network.DENSE) -> Generator:
    settings = replace(SETTINGS, network=network)
    return Generator(Decoder((3, 5), settings, jax.random.key(0)), (3, 5), settings, origin)


@pytest.mark.parametrize("origin", [PUBLIC, NOT_PRIVATE, private(1.5, 1e-5, "clip")])
@pytest.mark.parametrize("network", list(Network))
def test_a_generator_comes_back_bit_by_bit(
    tmp_path: Path, origin: Origin, network: Network
) -> None:
    generator, path = made(origin, network), tmp_path / "generator"
    generator_file.save(generator, path)
    back = generator_file.load(path, (3, 5))
    assert (back.shape, back.settings, back.origin) == ((3, 5), generator.settings, origin)
    np.testing.assert_array_equal(back.samples(4, 1), generator.samples(4, 1))
    assert [each.name for each in tmp_path.iterdir()] == ["generator"]


def test_another_shape_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "generator"
    generator_file.save(made(), path)
    with pytest.raises(OtherShapeError, match="3 frames × 5 bands; wanted: 32 × 40"):
        generator_file.load(path, (32, 40))


@pytest.mark.parametrize("place", [0, 9, 40, -33, -1])
def test_a_changed_byte_is_found(tmp_path: Path, place: int) -> None:
    path = tmp_path / "generator"
    generator_file.save(made(), path)
    content = bytearray(path.read_bytes())
    content[place] ^= 0x10
    path.write_bytes(content)
    with pytest.raises((DamagedFileError, OtherShapeError)):
        generator_file.load(path)


@pytest.mark.parametrize("length", [0, 7, 11, 200, -1])
def test_a_file_that_was_cut_short_is_refused(tmp_path: Path, length: int) -> None:
    path = tmp_path / "generator"
    generator_file.save(made(), path)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(DamagedFileError):
        generator_file.load(path)


def rewritten(path: Path, change: dict[str, Any]) -> None:
    """The file with another header, its digest right."""
    content = path.read_bytes()[:-32]
    length = int.from_bytes(content[8:12], "little")
    about = json.loads(content[12 : 12 + length])
    about["header"].update(change)
    text = json.dumps(about).encode()
    new = content[:8] + len(text).to_bytes(4, "little") + text + content[12 + length :]
    path.write_bytes(new + hashlib.sha256(new).digest())


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2}, {"kind": "classifier"}, {"shape": [3]}, {"shape": "3x5"}, {"origin": {}},
        {"shape": [1e9, 1e9]}, {"settings": {"network": "dense", "code": "1"}}, {"settings": 3},
        {"origin": {"kind": "dp", "epsilon": None, "delta": None, "unit": None}},
    ],
    ids=str,
)  # fmt: skip
def test_a_header_that_makes_no_sense_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "generator"
    generator_file.save(made(), path)
    rewritten(path, change)
    with pytest.raises(DamagedFileError):
        generator_file.load(path)


def test_a_header_of_other_networks_is_refused_before_they_are_built(tmp_path: Path) -> None:
    path = tmp_path / "generator"
    generator_file.save(made(), path)
    settings = generator_file.plain(SETTINGS) | {"width": 2**14, "latent": 2**14}
    rewritten(path, {"settings": settings})
    with pytest.raises(OtherShapeError):
        generator_file.load(path)


def test_weights_that_are_no_numbers_are_neither_written_nor_read(tmp_path: Path) -> None:
    path, generator = tmp_path / "generator", made()
    decoder = jax.tree.map(lambda leaf: jnp.full_like(leaf, jnp.nan), generator.decoder)
    with pytest.raises(InvalidInputError, match="finite"):
        generator_file.save(replace(generator, decoder=decoder), path)
    generator_file.save(generator, path)
    leaves_file.write(path, leaves_file.header(path), decoder)
    with pytest.raises(DamagedFileError, match="finite"):
        generator_file.load(path)


def test_a_missing_file_and_a_missing_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(DamagedFileError, match="none"):
        generator_file.load(tmp_path / "none")
    with pytest.raises(InvalidInputError, match="cannot be written"):
        generator_file.save(made(), tmp_path / "none" / "generator")


def test_an_origin_says_in_words_what_holds() -> None:
    assert "public" in PUBLIC.text
    assert NOT_PRIVATE.text.startswith("not private")
    assert "ε = 1.5 at δ = 1e-05" in private(1.5, 1e-5, "clip").text


@pytest.mark.parametrize(
    "make",
    [
        lambda: Origin("dp"),  # type: ignore[arg-type]
        lambda: Origin(OriginKind.DP),
        lambda: Origin(OriginKind.PUBLIC, 1.0, 1e-5, "clip"),
        lambda: private(0.0, 1e-5, "clip"),
        lambda: private(float("inf"), 1e-5, "clip"),
        lambda: private(1.0, 0.0, "clip"),
        lambda: private(1.0, 1e-5, ""),
        lambda: private(1.0, 1e-5, "x" * 101),
    ],
)
def test_an_origin_that_claims_nothing_sensible_is_refused(make: Any) -> None:
    with pytest.raises(InvalidParametersError):
        make()
