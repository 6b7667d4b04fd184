"""The published embeddings of the shipped encoders, reproduced from docs/protocol.md alone."""

from __future__ import annotations

import hashlib
import json
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

from earshot_protocol.shipped_encoders import SHIPPED_ENCODERS

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "vectors"
SAMPLES = {8000: (256, 128, 1500), 16_000: (512, 256, 3000)}
"""By rate: of a frame and from one to the next, and the coefficient of the chirp."""
CASES = json.loads((FOLDER / "encoder.json").read_text(encoding="utf-8"))
ENCODERS = {case["encoder"]: case for case in CASES}


def test_there_is_an_embedding_of_each_shipped_encoder() -> None:
    assert list(ENCODERS) == list(SHIPPED_ENCODERS)
    assert {name: case["rate"] for name, case in ENCODERS.items()} == {
        "contrast-1": 8000,
        "contrast-3": 16_000,
    }


@pytest.mark.parametrize("case", ENCODERS.values(), ids=list(ENCODERS))
def test_the_encoder_from_the_document_alone(case: dict[str, Any]) -> None:
    rate, (frame, hop, chirp) = case["rate"], SAMPLES[case["rate"]]
    time = np.arange(rate) / rate
    samples = 0.2 * np.sin(2 * np.pi * 440 * time) + 0.1 * np.sin(2 * np.pi * chirp * time**2)
    assert f"2π {chirp} t²" in case["samples"]
    samples /= np.sqrt(np.mean(samples**2))
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(frame) / frame)
    hann /= np.sqrt(np.sum(hann**2))
    frames = np.array([samples[hop * i : hop * i + frame] * hann for i in range(61)])
    power = np.abs(np.fft.rfft(frames)) ** 2

    def hertz(mel: float) -> float:
        return 200 / 3 * mel if mel < 15 else 1000 * 6.4 ** ((mel - 15) / 27)

    highest = 15 + 27 * math.log(rate / 2000) / math.log(6.4)
    edges = [hertz(mel) for mel in np.linspace(50 * 3 / 200, highest, 66)]
    bins = np.arange(frame // 2 + 1) * 31.25
    mel = np.empty((61, 64))
    for band, (low, centre, high) in enumerate(zip(edges, edges[1:], edges[2:], strict=False)):
        weights = np.clip(
            np.minimum((bins - low) / (centre - low), (high - bins) / (high - centre)), 0, None
        )
        mel[:, band] = np.log(power @ weights / weights.sum() + 1e-8)
    # In power, not in its logarithm: near the floor float32 has few digits of it.
    for frame, name in ((mel[0], "first_frame"), (mel[-1], "last_frame")):
        assert np.exp(frame) == pytest.approx(np.exp(case[name]), rel=1e-4, abs=1e-10)
    data = FOLDER.parents[1] / "protocol" / "earshot_protocol" / "data"
    file = data / f"{case['encoder']}.tflite"
    with zipfile.ZipFile(file) as archive:
        card = json.loads(archive.read("encoder.json"))
    model = file.read_bytes()[: card["length"]]
    assert hashlib.sha256(model).hexdigest() == card["sha256"]
    assert card["name"] == case["encoder"]
    network = Interpreter(model_content=model)
    network.allocate_tensors()
    (given,), (said,) = network.get_input_details(), network.get_output_details()
    network.set_tensor(given["index"], mel[np.newaxis, ..., np.newaxis].astype(np.float32))
    network.invoke()
    embedding = network.get_tensor(said["index"])[0].astype(float)
    embedding /= np.linalg.norm(embedding)
    whitened = (embedding - card["mean"]) * card["scale"]
    for ours, expected in (
        (embedding, case["embedding"]),
        (whitened[:8], case["projected_to_8"]),
    ):
        assert ours @ np.array(expected) / np.linalg.norm(ours) > 0.999
        assert np.linalg.norm(expected) == pytest.approx(1, abs=1e-4)
