"""Fifty `earshot phone` processes label samples over HTTP, though some are killed on the way.

Each phone has heard three of five environments, so none could name all samples.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.command import earshot
from support.networked import ServerProcess, await_

from earshot_client.commands import folder
from earshot_client.encoder import default_encoder
from earshot_client.store.interface import ENCODER
from earshot_protocol.api import Invite
from earshot_protocol.geometry import unit_rows
from earshot_protocol.phases.labelling import Labelled
from earshot_protocol.privacy.ledger import Ledger
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER

PHONES, KILLED, DIMENSIONS, SAMPLES = 50, 5, 32, 10
CLASSES = ("bus", "café", "kitchen", "office", "park")
PLACES = np.random.default_rng(71).standard_normal((len(CLASSES), 128))


def heard(scenes: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Embeddings of these scenes, unit rows as an encoder gives them."""
    return unit_rows(PLACES[scenes] + 0.5 * random.standard_normal((len(scenes), 128)))


def furnish(data: Path, number: int) -> None:
    """The folder of a phone that has heard three environments, and labelled half of it."""
    random = np.random.default_rng([72, number])
    known = random.permutation(len(CLASSES))[:3]
    scenes = np.repeat(known, 4)
    store = folder.opened(data)
    store.put(ENCODER, DEFAULT_ENCODER.encode())
    for embedding, scene in zip(heard(scenes, random), scenes, strict=True):
        recording = store.add(embedding)
        if recording % 2:
            store.label(recording, CLASSES[scene])
    store.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    server = ServerProcess(tmp_path_factory.mktemp("labelling"), None, "--threads", "60")
    with server:
        yield server


def started(data: Path, server: ServerProcess, code: str) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603 - our own command
        [
            *(sys.executable, "-m", "earshot_client", "phone", "--data", str(data), "--json"),
            *("--server", server.address, "--invitation", code, "--until-result"),
            *("--poll", "0.5", "--limit.least-phones", str(PHONES), "--labels", ",".join(CLASSES)),
            # A crowd of fifty hides a phone at a larger ε than a phone as it comes agrees to.
            *("--limit.largest-phone-epsilon", "6.1", "--limit.largest-epsilon", "9"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_fifty_processes_answer_what_none_of_them_could(
    server: ServerProcess, tmp_path: Path
) -> None:
    scenes = np.arange(SAMPLES) % len(CLASSES)
    embeddings = heard(scenes, np.random.default_rng(73)).astype(np.float32)
    np.save(tmp_path / "samples.npy", default_encoder().project(embeddings, DIMENSIONS))
    words = [
        *("phase", "start", "--phones", PHONES, "--samples", tmp_path / "samples.npy"),
        *("--labels", ",".join(CLASSES), "--dropout", "0.1", "--epsilon", "6"),
        *("--step-hours", "1", "--anyway", "--json"),
        *("--server", server.address, "--data", server.data),
    ]
    run = earshot(*words)
    assert run.returncode == 0, run.stderr
    phase, operator = json.loads(run.stdout)["phase"], server.operator()
    code = operator.invite(Invite(uses=PHONES)).code
    for number in range(PHONES):
        furnish(tmp_path / str(number), number)
    phones = {number: started(tmp_path / str(number), server, code) for number in range(PHONES)}
    try:
        for step in range(1, KILLED + 1):  # one more in each of the first steps
            await_(lambda: len(operator.phase(phase).steps) >= step, "a step", 300)  # noqa: B023
            time.sleep(0.2)
            phones[step].send_signal(signal.SIGKILL)
            phones[step].communicate()
            phones[step] = started(tmp_path / str(step), server, code)
        said = {number: each.communicate(timeout=300) for number, each in phones.items()}
    finally:
        for each in phones.values():
            if each.poll() is None:
                each.kill()
    assert {each.returncode for each in phones.values()} == {0}, said
    ending = operator.export(phase).ending
    assert isinstance(ending, Labelled)
    pairs = list(zip(ending.labels, scenes, strict=True))
    # 23 phones or more know each sample, 11 must agree, and noise deviates by 4.
    assert sum(label == scene for label, scene in pairs) >= SAMPLES - 2, ending
    assert sum(label not in (-1, scene) for label, scene in pairs) <= 1, ending
    for number in range(PHONES):
        told = json.loads(said[number][0])["ending"]
        assert told["type"] == "labelled"
        assert told["answers"] == [CLASSES[each] if each >= 0 else None for each in ending.labels]
        store = folder.opened(tmp_path / str(number))
        releases = Ledger(store.ledger()).releases
        store.close()
        steps = [release.step for release in releases if release.unit is Unit.PHONE]
        assert steps == ["votes", "check"], "nothing twice, though some were killed"
