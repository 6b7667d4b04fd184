"""Simulated phones hear at the rate of their encoder, and not what has less than it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile
from support.wide_encoder import WIDE_NAME, wide_file

from earshot_client.encoder import default_encoder, encoder_path, open_encoder, rate_of
from earshot_client.features import one_second
from earshot_models.soundscapes import synthesize
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER
from earshot_simulations.populations import SoundFolder, Soundscapes
from earshot_simulations.populations.population import HELD_OUT_PER_SCENE, PhoneCrowd, Stream


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wide_file(tmp_path_factory.mktemp("wide"))


def hisses(folder: Path, rates: list[int]) -> Path:
    """Two classes of recordings, one of each rate in each, that hold all that their rate can."""
    generator = np.random.default_rng(0)
    for label in ("dull", "sharp"):
        (folder / label).mkdir(parents=True)
        for number, rate in enumerate(rates):
            sound = generator.normal(0, 0.1, 2 * rate)
            soundfile.write(folder / label / f"{number}.wav", sound, rate)
    return folder


def test_phones_hear_a_folder_at_the_rate_of_their_encoder(tmp_path: Path, wide: Path) -> None:
    folder = hisses(tmp_path / "sounds", [16_000, 32_000, 44_100, 16_000])
    (folder / "dull" / "broken.wav").write_bytes(b"not a sound")
    encoder = open_encoder(wide)
    assert rate_of(encoder) == 16_000
    expected = []
    for path in sorted(folder.glob("*/?.wav")):
        samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
        seconds = [one_second(samples[start : start + rate], rate, 16_000) for start in (0, rate)]
        expected.append(encoder.project(encoder.embed(np.stack(seconds)), 16))
    with SoundFolder(folder, 30, 10, 0.5, 1, dimensions=16, encoder=wide) as population:
        heard = np.concatenate([population.recordings(phone).points for phone in range(30)])
        heard = np.concatenate([heard, population.held_out().points])
        assert [entry.recording for entry in population.skipped] == ["dull/broken.wav"]
    known = np.concatenate(expected)
    nearest = np.linalg.norm(heard[:, np.newaxis] - known, axis=2)
    assert nearest.min(axis=1).max() < 1e-4
    assert set(nearest.argmin(axis=1)) == set(range(len(known)))


def test_files_below_the_rate_of_the_encoder_are_named_before_any_work(
    tmp_path: Path, wide: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = hisses(tmp_path / "sounds", [16_000, 8000, 44_100, 11_025])
    monkeypatch.setattr(SoundFolder, "_embed_all", None)
    with pytest.raises(InvalidInputError) as told:
        SoundFolder(folder, 3, 5, 0.5, 1, encoder=wide)
    assert str(told.value) == (
        f"the encoder '{WIDE_NAME}' hears 16,000 samples per second, but 4 of 8 files have fewer: "
        "dull/1.wav (8,000), dull/3.wav (11,025), sharp/1.wav (8,000), sharp/3.wav (11,025); "
        "record at that rate or above, or choose an encoder that hears less, as contrast-1 does "
        "(with --discovery local alone)"
    )
    # The first of many are named; files that the encoder hears in whole are not refused.
    many = hisses(tmp_path / "many", [8000, 4000, 6000, 7999])
    with pytest.raises(InvalidInputError, match=r"8 of 8 .*/0\.wav \(8,000\) and 3 more; .* less$"):
        SoundFolder(many, 3, 5, 0.5, 1, encoder=wide)
    narrow = encoder_path("contrast-1")
    with pytest.raises(InvalidInputError, match=r"hears 8,000 .* 6 of 8 files .* hears less$"):
        SoundFolder(many, 3, 5, 0.5, 1, encoder=narrow)
    assert SoundFolder(folder, 3, 5, 0.5, 1, encoder=narrow).rate == 8000
    hears = rate_of(default_encoder())
    with pytest.raises(InvalidInputError, match=rf"'{DEFAULT_ENCODER}' hears {hears:,} .* 4 of 8"):
        SoundFolder(folder, 3, 5, 0.5, 1)


@pytest.mark.slow
def test_phones_hear_synthesized_scenes_at_the_rate_of_their_encoder(wide: Path) -> None:
    def scenes(encoder: Path | None) -> np.ndarray:
        with Soundscapes(1, 1, 1, 0.5, seed=3, dimensions=16, encoder=encoder) as population:
            assert population.rate == rate_of(open_encoder(encoder))
            return population.held_out().points

    heard = {encoder_path("contrast-1"): 8000, wide: 16_000, None: rate_of(default_encoder())}
    for encoder, rate in heard.items():
        generator = PhoneCrowd(1, 1, 1, 0.5, 3).generator(Stream.HELD_OUT)
        sound = synthesize("rain", HELD_OUT_PER_SCENE, generator, rate)
        seconds = np.stack([one_second(second, rate, rate) for second in sound])
        hears = open_encoder(encoder)
        np.testing.assert_array_equal(scenes(encoder), hears.project(hears.embed(seconds), 16))
