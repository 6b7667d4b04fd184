"""`earshot starts`: the same network with start centroids of other sound."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from support.command import Earshot
from support.esc_folder import write_esc_folder

from earshot_client.encoder import encoder_path
from earshot_client.lite_rt_encoder import LiteRtEncoder
from earshot_models import origins, start_centroids
from earshot_models.soundscapes import SCENES, synthesize
from earshot_protocol import encoder_file
from earshot_protocol.start_centroids import USUAL_COUNTS, USUAL_DIMENSIONS

_SECONDS = 220


@pytest.fixture(autouse=True)
def little_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_centroids, "SECONDS", _SECONDS)
    monkeypatch.setattr(origins, "_SYNTHESIZED", 8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_esc_folder(tmp_path_factory.mktemp("esc"), SCENES, clips=2, seconds=2)


@pytest.mark.slow
def test_the_network_stays_and_every_usual_set_is_new(
    tmp_path: Path, folder: Path, earshot: Earshot
) -> None:
    out = tmp_path / "new" / "encoder.tflite"
    words = ("--encoder", "contrast-1", "--data", folder, "--out", out)
    status, said, err = earshot("starts", *words)
    assert status == 0, err
    assert str(out) in said
    given = encoder_file.read(encoder_path("contrast-1").read_bytes())
    made = encoder_file.read(out.read_bytes())
    assert made.model == given.model
    assert made.card.sha256 == given.card.sha256
    assert (made.card.name, made.credits, made.card.mean, made.card.scale) == (
        given.card.name,
        given.credits,
        given.card.mean,
        given.card.scale,
    )
    pairs = {(each.count, each.dimensions) for each in made.card.start_centroids}
    assert pairs == set(itertools.product(USUAL_COUNTS, USUAL_DIMENSIONS))
    for each in made.card.start_centroids:
        rows = each.centroids()
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
        assert len(np.unique(rows, axis=0)) == each.count
    # They lie where sound is: nearer to scenes than as many random directions do.
    opened, before = LiteRtEncoder.open(out), LiteRtEncoder.open(encoder_path("contrast-1"))
    generator = np.random.default_rng(0)
    heard = np.concatenate([synthesize(scene, 5, generator) for scene in SCENES])
    points = opened.project(opened.embed(heard), 32)
    random = generator.standard_normal((40, 32))
    random /= np.linalg.norm(random, axis=1, keepdims=True)
    near, far = (
        (points @ rows.T).max(axis=1).mean() for rows in (opened.start_centroids(32, 40), random)
    )
    assert near > far + 0.2
    # A phone opens it, and hears as before.
    assert np.array_equal(opened.embed(heard), before.embed(heard))
    # The same again, byte for byte; with another seed, others.
    again, other = tmp_path / "again.tflite", tmp_path / "other.tflite"
    assert earshot("starts", *words[:-1], again)[0] == 0
    assert again.read_bytes() == out.read_bytes()
    assert earshot("starts", *words[:-1], other, "--seed", 1)[0] == 0
    sets = zip(
        made.card.start_centroids,
        encoder_file.read(other.read_bytes()).card.start_centroids,
        strict=True,
    )
    assert all(one.rows != another.rows for one, another in sets)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "--data: name a folder of sound, or take synthesized scenes alone"),
        (("--data", "FOLDER", "--share", 1, "--share", 2), "--share: give one for each of 1"),
        (("--synthesized", 1, "--out", "THERE"), "this file exists; --overwrite replaces it"),
        (("--data", "FOLDER", "--synthesized", 1), "leaves no share"),
        (("--data", "nowhere"), "nowhere"),
    ],
)
def test_what_cannot_be_done_is_refused_and_leaves_no_file(
    words: tuple[object, ...],
    message: str,
    tmp_path: Path,
    folder: Path,
    earshot: Earshot,
) -> None:
    there, out = tmp_path / "there.tflite", tmp_path / "out.tflite"
    there.write_bytes(b"kept")
    told = [{"FOLDER": folder, "THERE": there}.get(str(word), word) for word in words]
    if "--out" not in words:
        told += ["--out", out]
    status, _, err = earshot("starts", "--encoder", "contrast-1", *told)
    assert status == 2
    assert message in err
    assert there.read_bytes() == b"kept"
    assert not out.exists()


def test_what_is_no_encoder_is_refused(tmp_path: Path, earshot: Earshot) -> None:
    words = ("--synthesized", 1, "--out", tmp_path / "out.tflite")
    status, _, err = earshot("starts", "--encoder", __file__, *words)
    assert status != 0
    assert "encoder" in err
    assert not (tmp_path / "out.tflite").exists()
