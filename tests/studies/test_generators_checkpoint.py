"""Files of networks' numbers: what goes in comes out, and nothing else is let in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from support import compiling  # noqa: F401  # programs are compiled in half the time

from earshot_protocol.errors import InvalidParametersError
from earshot_studies.pate_aae.generators.checkpoint import (
    DamagedFileError,
    OtherShapeError,
    read_arrays,
    read_header,
    write_arrays,
)
from earshot_studies.pate_aae.generators.networks import Decoder
from earshot_studies.pate_aae.generators.origin import (
    NOT_PRIVATE,
    PUBLIC,
    Origin,
    OriginKind,
    private,
)
from earshot_studies.pate_aae.generators.settings import GeneratorSettings

ABOUT = {"done": 3}


@pytest.fixture(scope="module")
def network() -> Decoder:
    return Decoder((3, 5), GeneratorSettings(width=8, latent=2), jax.random.key(0))


@pytest.fixture
def path(tmp_path: Path, network: Decoder) -> Path:
    write_arrays(tmp_path / "network", ABOUT, network)
    return tmp_path / "network"


def test_a_network_comes_back_bit_by_bit(path: Path, network: Decoder) -> None:
    assert read_header(path) == ABOUT
    back = read_arrays(path, network)
    assert jax.tree.structure(back) == jax.tree.structure(network)
    for found, written in zip(jax.tree.leaves(back), jax.tree.leaves(network), strict=True):
        np.testing.assert_array_equal(found, written)
    assert [each.name for each in path.parent.iterdir()] == ["network"]


def test_another_network_is_refused_before_a_number_is_read(path: Path) -> None:
    wider = Decoder((3, 5), GeneratorSettings(width=9, latent=2), jax.random.key(0))
    with pytest.raises(OtherShapeError, match="holds arrays"):
        read_arrays(path, wider)


@pytest.mark.parametrize("place", [0, 9, 40, -33, -1])
def test_a_changed_byte_is_found(path: Path, place: int, network: Decoder) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 0x10
    path.write_bytes(content)
    with pytest.raises((DamagedFileError, OtherShapeError)):
        read_arrays(path, network)


@pytest.mark.parametrize("length", [0, 7, 11, 100, -1])
def test_a_file_that_was_cut_short_is_refused(path: Path, length: int, network: Decoder) -> None:
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(DamagedFileError):
        read_arrays(path, network)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DamagedFileError, match="none"):
        read_header(tmp_path / "none")


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
