"""The results of training a generator, or of sampling from one: figures, sounds, a page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from earshot_models.generators import spectrogram
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.files import replace_file
from earshot_simulations.generation import frechet, page, public_embedding, wav
from earshot_simulations.generation.frechet import Fidelity
from earshot_simulations.generation.kinds import TrainingKind
from earshot_simulations.generation.page import Listening, PlayedSound
from earshot_simulations.generation.public_embedding import EmbeddingSettings
from earshot_simulations.generation.recipes import NORM
from earshot_simulations.generation.run import TrainedGenerator

if TYPE_CHECKING:
    from earshot_models.generators.generator import Generator
    from earshot_models.generators.origin import Origin

GENERATOR, FIGURES, REPORT, PAGE = "generator.npz", "result.json", "report.md", "listen.html"
SAMPLES = "samples"
"""Name of the folder of sounds."""
SAMPLED = (FIGURES, PAGE, SAMPLES)
FILES = (GENERATOR, FIGURES, REPORT, PAGE, SAMPLES)

NOISE = (
    "Any of these samples may be noise: a generator makes sound whether it has learned anything or "
    "not. Listen, and compare with samples of an untrained one, before you rely on any."
)
_DIMENSIONS = 32
"""Most dimensions of the embedding."""
_SEED = 1
"""Seed of the samples that distances are measured on; audible samples may have any."""


def distance(trained: TrainedGenerator) -> tuple[Fidelity | None, str]:
    """Return the samples' distance from public sound with a remark, or None with the reason.

    No distance to sensitive clips is computed: it would reveal something about them, free of
    charge.
    """
    known = trained.public
    if known is None:
        return None, (
            "No distance to the sensitive clips is given, because it would be an uncounted release "
            "of its own; give --public to learn the samples' distance from public sound."
        )
    # As many as two halves of the public clips allow.
    dimensions = min(_DIMENSIONS, len(known) // (2 * frechet.SAMPLES_PER_DIMENSION))
    try:
        settings = EmbeddingSettings(max(2, dimensions))
        embedding = public_embedding.fit(known.pictures, known.labels, settings)
        samples = trained.generator.samples(len(known) // 2, _SEED)
        found = frechet.fidelity(embedding.embed(known.pictures), embedding.embed(samples))
    except InvalidInputError as error:
        return None, f"There is too little public sound for a distance: {error}."
    own = "" if trained.sensitive else "; the generator learned from the same clips"
    return found, f"{found.note}{own}"


def write_samples(generator: Generator, count: int, seed: int, folder: Path) -> list[PlayedSound]:
    """Write samples as WAV files, and return them for the page.

    Raises:
        OtherShapeError: The generator's clips cannot be turned back into sound.
    """
    from earshot_models.generators.leaves_file import OtherShapeError

    if generator.shape != spectrogram.SMALL.shape:
        frames, bands = generator.shape
        raise OtherShapeError(
            f"the generator makes clips of {frames} frames × {bands} bands; sound is made of "
            f"{spectrogram.SMALL.frames} × {spectrogram.SMALL.bands}"
        )
    (folder / SAMPLES).mkdir(exist_ok=True)
    for old in (folder / SAMPLES).glob("sample-*.wav"):
        old.unlink()  # perhaps of another generator, or beyond the count
    waves = spectrogram.sound(generator.samples(count, seed))
    sounds = []
    for number, wave in enumerate(waves, start=1):
        wav.write(folder / SAMPLES / f"sample-{number:04}.wav", wave, spectrogram.SMALL.rate)
        sounds.append(PlayedSound(f"Sample {number}", wave, spectrogram.SMALL.rate))
    return sounds


def write_page(
    origin: Origin,
    sounds: Sequence[PlayedSound],
    facts: Sequence[tuple[str, str]],
    folder: Path,
) -> Path:
    """Write the page to listen on, and return its path."""
    number = len(sounds)
    made = f"{number} {'sample' if number == 1 else 'samples'} of a generator"
    listening = Listening(
        kicker="generated sound",
        headline=f"{made}, {headline(origin)}",
        warnings=[*([_sentence(origin.text)] if not_private(origin) else []), NOISE],
        origin=_sentence(f"The generator is {origin.text}"),
        sounds=sounds,
        facts=facts,
    )
    path = folder / PAGE
    page.write(listening, path)
    return path


def headline(origin: Origin) -> str:
    """Return a few words on the privacy of samples."""
    from earshot_models.generators.origin import OriginKind

    if origin.kind is OriginKind.PUBLIC:
        return "trained on public sound"
    if origin.kind is OriginKind.NOT_PRIVATE:
        return "not private"
    return f"differentially private at ε = {origin.epsilon:.4g}"


def not_private(origin: Origin) -> bool:
    """Return whether samples may repeat the sound that the generator learned from."""
    from earshot_models.generators.origin import OriginKind

    return origin.kind is OriginKind.NOT_PRIVATE


def figures(origin: Origin, samples: int, seed: int) -> dict[str, Any]:
    """Return the figures of samples, by the names of `result.json`."""
    return {
        "origin": origin.kind.value,
        "epsilon": origin.epsilon,
        "delta": origin.delta,
        "unit": origin.unit,
        "says": origin.text,
        "samples": samples,
        "seed": seed,
        "may_be_noise": NOISE,
    }


def training_figures(trained: TrainedGenerator, found: Fidelity | None, why: str) -> dict[str, Any]:
    """Return the figures of a training, by the names of `result.json`."""
    request, noise = trained.request, trained.noise
    return {
        "kind": request.kind.value,
        "clips": trained.clips,
        "steps": request.size.steps,
        "batch": request.size.batch,
        "teachers": request.teachers,
        "mechanism": request.mechanism and request.mechanism.value,
        "queries": request.queries if request.kind is TrainingKind.PATE_GAN else None,
        "noise": noise and noise.level,
        "norm": NORM if noise is not None and request.kind is not TrainingKind.PATE_GAN else None,
        "distance": found
        and {
            "samples_from_public": found.generated.mean,
            "samples_from_public_interval_95": found.generated.wide,
            "public_from_public": found.real.mean,
            "public_from_public_interval_95": found.real.wide,
            "size": found.size,
            "dimensions": found.dimensions,
        },
        "distance_note": why,
    }


def write_json(content: dict[str, Any], folder: Path) -> None:
    """Write all figures to `result.json`."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    replace_file(folder / FIGURES, f"{text}\n")


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."
