"""`earshot phone --encoder FILE`: an encoder that somebody trained, checked against the phase."""

from __future__ import annotations

import io
import json
import subprocess
import zipfile
from pathlib import Path

import msgspec
import numpy as np
import pytest
import soundfile
from support.command import earshot
from support.parameters import learning_parameters
from support.phone_server import PhoneServer, asking, serving

from earshot_client.encoder import encoder_path, open_encoder, rate_of
from earshot_protocol import encoder_file
from earshot_protocol.api import ANSWER
from earshot_protocol.messages import Wait
from earshot_protocol.phases.learning import Cluster
from earshot_protocol.spectrum import SPECTRA

NAME = "streets-of-luebeck-1"
RATE = rate_of(open_encoder())


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped network under another name, as `earshot train` would export it."""
    read = encoder_file.read(encoder_path().read_bytes())
    card = read.card
    path = tmp_path_factory.mktemp("trained") / "encoder.tflite"
    path.write_bytes(
        encoder_file.pack(
            read.model,
            NAME,
            card.quantization == "int8",
            card.mean,
            card.scale,
            {},
            "nobody",
            spectrum=SPECTRA[card.features],
        )
    )
    return path


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    folder = tmp_path / "sound"
    folder.mkdir()
    noise = np.random.default_rng(4).normal(0, 0.1, 5 * RATE)
    soundfile.write(folder / "park.wav", noise, RATE)
    return folder


def asking_for(encoder: str) -> PhoneServer:
    """A server whose phase clusters embeddings of this encoder."""
    parameters = learning_parameters(phones=100, encoder=encoder, corrupted=0.05)
    return asking(Cluster(phase=bytes(16), index=0, parameters=parameters), Wait(seconds=9.0))


def with_card(data: bytes, **changes: object) -> bytes:
    """The same model behind a card that says something else."""
    read = encoder_file.read(data)
    file = io.BytesIO()
    file.write(read.model)
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("encoder.json", json.dumps(msgspec.to_builtins(read.card) | changes))
        archive.writestr("CREDITS.txt", read.credits)
    return file.getvalue()


def phone(*words: object) -> subprocess.CompletedProcess[str]:
    return earshot("phone", "--per-recording", *words)


def test_a_phone_with_a_trained_encoder_takes_part_in_phases_of_that_name(
    trained: Path, sound: Path, tmp_path: Path
) -> None:
    server = asking_for(NAME)
    with serving(server):
        seen = phone(
            *("--data", tmp_path / "phone", "--server", server.url, "--invitation", "welcome"),
            *("--hear", sound, "--encoder", trained, "--once", "--json"),
        )
    assert seen.returncode == 0, seen.stderr
    assert "answered: local centroids" in seen.stderr
    summary = json.loads(seen.stdout)
    assert summary["recordings"] == 5
    assert {entry["step"] for entry in summary["ledger"]} == {"cluster", "select"}


@pytest.mark.parametrize("own", [True, False], ids=["trained", "shipped"])
def test_a_phase_of_another_encoder_is_refused_by_name(
    trained: Path, sound: Path, tmp_path: Path, own: bool
) -> None:
    shipped = open_encoder().name
    asked, has = (shipped, NAME) if own else (NAME, shipped)
    server = asking_for(asked)
    with serving(server):
        seen = phone(
            *("--data", tmp_path / "phone", "--server", server.url, "--invitation", "welcome"),
            *("--hear", sound, "--once", *(("--encoder", trained) if own else ())),
        )
    assert seen.returncode == 1
    assert f"embeddings of '{asked}'; this phone's are of '{has}'" in seen.stdout
    assert ANSWER not in [path for path, _ in server.requests]


def test_a_file_that_is_no_encoder_is_named_before_anything_is_made(
    trained: Path, tmp_path: Path
) -> None:
    data = trained.read_bytes()
    files = {
        "no.tflite": (None, "cannot be read"),
        "words.tflite": (b"not a model", "not an encoder file"),
        "changed.tflite": (b"\1" + data[1:], "not the one that its card describes"),
        "narrow.tflite": (with_card(data, dimensions=64), "must have 128 dimensions"),
        "nameless.tflite": (with_card(data, name=""), "a name of 1 to 64"),
    }
    for name, (content, said) in files.items():
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content)
        seen = phone(
            *("--data", tmp_path / "phone", "--server", "http://127.0.0.1:9"),
            *("--invitation", "welcome", "--encoder", path, "--once"),
        )
        assert (seen.returncode, seen.stdout) == (2, ""), name
        assert said in seen.stderr
        assert str(path) in seen.stderr
        assert seen.stderr.count("\n") == 1
        assert not (tmp_path / "phone").exists()


def test_sound_below_the_rate_of_the_encoder_is_refused_by_the_files_names(tmp_path: Path) -> None:
    (tmp_path / "sound").mkdir()
    low = RATE - 1
    soundfile.write(
        tmp_path / "sound" / "dull.wav", np.random.default_rng(4).normal(0, 0.1, low), low
    )
    server = asking_for(open_encoder().name)
    with serving(server):
        seen = phone(
            *("--data", tmp_path / "phone", "--server", server.url, "--invitation", "welcome"),
            *("--hear", tmp_path / "sound", "--once"),
        )
    assert (seen.returncode, seen.stdout) == (2, "")
    assert f"than the {RATE:,} that the encoder hears: dull.wav ({low:,});" in seen.stderr
    assert seen.stderr.count("\n") == 1


@pytest.mark.slow
def test_what_one_encoder_heard_is_forgotten_under_another_and_the_ledger_is_not(
    trained: Path, sound: Path, tmp_path: Path
) -> None:
    server = asking_for("contrast-1")
    words = ("--data", tmp_path / "phone", "--invitation", "welcome", "--once", "--json")
    with serving(server):
        first = phone(*words, "--server", server.url, "--hear", sound, "--encoder", "contrast-1")
        second = phone(*words, "--server", server.url, "--encoder", trained)
        again = phone(*words, "--server", server.url, "--hear", sound, "--encoder", trained)
    assert json.loads(first.stdout)["recordings"] == 5
    # What is still there to hear is heard anew.
    assert json.loads(again.stdout)["recordings"] == 5, again.stderr
    summary = json.loads(second.stdout)
    assert (summary["recordings"], summary["ledger"]) == (0, json.loads(first.stdout)["ledger"])
