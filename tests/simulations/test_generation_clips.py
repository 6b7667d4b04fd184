"""What a generator is trained on, and what is refused before any training."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray
from support import sound_layouts as layouts

from earshot_models.datasets.dataset import DatasetError
from earshot_models.generators import spectrogram
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.sound_reading import UnreadableFileError
from earshot_simulations.generation import clips as sound
from earshot_simulations.generation import kinds, run
from earshot_simulations.generation.budgets import NoisyMax, UselessBudgetError
from earshot_simulations.generation.kinds import TrainingKind, TrainingRequest, TrainingSize

RATE = 8000


def tone(hertz: float, seconds: float = 1.0, level: float = 0.1) -> NDArray[np.float32]:
    times = np.arange(int(seconds * RATE)) / RATE
    return (level * np.sin(2 * np.pi * hertz * times)).astype(np.float32)


def write(folder: Path, name: str, samples: NDArray[np.float32]) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, samples, RATE)
    return path


def test_files_are_found_at_any_depth_and_labelled_by_digit_folder_or_name(tmp_path: Path) -> None:
    for place, name in enumerate(("7_anna_3.wav", "dogs/a.wav", "x/cats/b.wav", "door-12.wav")):
        write(tmp_path, name, tone(300 + 50 * place))
    write(tmp_path, ".hidden/c.wav", tone(900))
    found = sound.opened(sound.listed(tmp_path))
    assert dict(zip(found.names, found.labels, strict=True)) == {
        "7_anna_3.wav": "7",
        "dogs/a.wav": "dogs",
        "x/cats/b.wav": "cats",
        "door-12.wav": "door",
    }
    assert found.pictures.shape == (4, 32, 40)
    assert len(found) == 4


def test_a_published_data_set_has_its_own_classes(tmp_path: Path) -> None:
    layouts.esc50(tmp_path)
    listed = sound.listed(tmp_path)
    assert listed.labels == ("dog", "rain", "sea_waves")
    assert len({clip.group for clip in listed.clips}) == 18  # names, by which they are told apart
    shutil.rmtree(tmp_path / "meta")
    with pytest.raises(DatasetError, match="which has the classes of ESC-50"):
        sound.listed(tmp_path / "audio")


def test_the_loudest_second_of_a_clip_is_learned_from_and_a_short_one_lies_in_the_middle(
    tmp_path: Path,
) -> None:
    quiet, loud = tone(300, 2, 0.01), tone(900, 1, 0.3)
    write(tmp_path, "long.wav", np.concatenate([quiet, loud, quiet]))
    write(tmp_path, "short.wav", tone(500, 0.25))
    found = sound.opened(sound.listed(tmp_path))
    long, short = found.pictures
    expected = spectrogram.log_mel(loud[np.newaxis])[0]
    assert np.abs(long[1:-1] - expected[1:-1]).max() < 0.02  # of 16 bits
    assert (short[:10] == -1).all()
    assert (short[-10:] == -1).all()
    assert short[15].max() > 0


def test_sound_that_cannot_be_learned_from_is_refused_by_name(tmp_path: Path) -> None:
    write(tmp_path, "a.wav", tone(300))
    write(tmp_path, "b.wav", np.zeros(RATE, dtype=np.float32))
    with pytest.raises(InvalidInputError, match=r"b\.wav: silent"):
        sound.opened(sound.listed(tmp_path))
    write(tmp_path, "b.wav", tone(300))
    with pytest.raises(InvalidInputError, match=r"b\.wav is the same sound as a\.wav"):
        sound.opened(sound.listed(tmp_path))
    (tmp_path / "b.wav").write_bytes(b"RIFF")
    with pytest.raises(UnreadableFileError, match=r"b\.wav does not decode"):
        sound.opened(sound.listed(tmp_path))
    samples = tone(400)
    samples[5] = np.nan
    soundfile.write(tmp_path / "b.wav", samples, RATE, subtype="FLOAT")
    with pytest.raises(UnreadableFileError, match=r"b\.wav holds NaN"):
        sound.opened(sound.listed(tmp_path))


def test_a_folder_without_sound_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="there is no folder"):
        sound.listed(tmp_path / "none")
    with pytest.raises(DatasetError, match="a folder with audio files"):
        sound.listed(tmp_path)


def test_what_is_sensitive_cannot_be_public(tmp_path: Path) -> None:
    for folder, name, hertz in (("s", "a", 300), ("s", "b", 400), ("p", "c", 500), ("p", "d", 400)):
        write(tmp_path / folder, f"{name}.wav", tone(hertz))
    sensitive, public = (sound.opened(sound.listed(tmp_path / each)) for each in "sp")
    with pytest.raises(InvalidInputError, match=r"^d\.wav: both in --public and in --clips"):
        sound.refuse_shared(sensitive, public)
    write(tmp_path / "p", "d.wav", tone(401))
    sound.refuse_shared(sensitive, sound.opened(sound.listed(tmp_path / "p")))


# ------------------------------------------------------------------ requests, and what they need

SIZE = TrainingSize(20, 8)
BUDGET = {"epsilon": 8.0, "delta": 1e-3}
TEACHERS = {"teachers": 50, "mechanism": NoisyMax.GNMAX}


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        (TrainingKind.AAE, {"epsilon": 1.0}, "adds no noise"),
        (TrainingKind.AAE_PRIVATE, {}, "--epsilon and --delta"),
        (TrainingKind.DP_GAN, {"epsilon": 1.0}, "--epsilon and --delta"),
        (TrainingKind.PATE_GAN, BUDGET, "--teachers"),
        (TrainingKind.DP_GAN, {**BUDGET, **TEACHERS}, "are for pate-gan, not for dp-gan"),
        (TrainingKind.AAE, {"teachers": 9}, "are for pate-gan, not for aae"),
    ],
)
def test_a_kind_has_what_it_needs_and_nothing_else(
    kind: TrainingKind, given: dict[str, float], said: str
) -> None:
    with pytest.raises(InvalidParametersError, match=said):
        TrainingRequest(kind, SIZE, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [TrainingSize(0, 8), TrainingSize(5, 0)], ids=str)
def test_a_training_has_steps_and_batches(size: TrainingSize) -> None:
    with pytest.raises(InvalidParametersError):
        TrainingRequest(TrainingKind.AAE, size)


def test_a_training_without_a_budget_needs_no_noise() -> None:
    assert kinds.noise(TrainingRequest(TrainingKind.AAE, SIZE), 100) is None


def test_more_teachers_or_larger_batches_than_clips_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="--teachers 50: there are 49 clips"):
        kinds.noise(TrainingRequest(TrainingKind.PATE_GAN, SIZE, **BUDGET, **TEACHERS), 49)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="--batch 8: must be at most 7"):
        kinds.noise(TrainingRequest(TrainingKind.DP_GAN, SIZE, **BUDGET), 7)
    with pytest.raises(InvalidParametersError, match="1/2000"):
        kinds.noise(TrainingRequest(TrainingKind.DP_GAN, SIZE, **BUDGET), 2000)


def test_a_budget_that_buys_nothing_is_refused_and_says_what_would_do() -> None:
    request = TrainingRequest(TrainingKind.PATE_GAN, TrainingSize(500, 8), 0.5, 1e-5, **TEACHERS)  # type: ignore[arg-type]
    with pytest.raises(UselessBudgetError, match=r"room for (\d+) of 4000 queries") as error:
        kinds.noise(request, 100)
    most = int(str(error.value).partition("room for ")[2].split()[0])
    smaller = TrainingRequest(TrainingKind.PATE_GAN, TrainingSize(most, 1), 0.5, 1e-5, **TEACHERS)  # type: ignore[arg-type]
    found = kinds.noise(smaller, 100)
    assert found is not None
    assert 0.95 * 50 < found.level <= 50
    with pytest.raises(UselessBudgetError, match="a batch of 8 clips can contribute 8"):
        kinds.noise(TrainingRequest(TrainingKind.AAE_PRIVATE, SIZE, 0.001, 1e-5), 100)
    with pytest.raises(UselessBudgetError, match="--teachers"):
        kinds.noise(
            TrainingRequest(
                TrainingKind.PATE_GAN, TrainingSize(10, 8), 0.1, 1e-5, 50, NoisyMax.LNMAX
            ),
            100,
        )


def test_folders_are_looked_at_before_anything_is_made(tmp_path: Path) -> None:
    write(tmp_path / "s", "a.wav", tone(300))
    request = TrainingRequest(TrainingKind.AAE, SIZE)
    for folders in ((None, None), (tmp_path / "s", tmp_path / "s")):
        with pytest.raises(InvalidParametersError, match="learns from one folder"):
            run.planned(request, *folders)
    with pytest.raises(InvalidParametersError, match="needs --clips"):
        run.planned(TrainingRequest(TrainingKind.DP_GAN, SIZE, **BUDGET), None, tmp_path / "s")
    with pytest.raises(DatasetError):
        run.planned(request, tmp_path / "none", None)
    plan = run.planned(request, tmp_path / "s", None)
    assert plan.sensitive
    assert plan.noise is None
    assert not run.planned(request, None, tmp_path / "s").sensitive
