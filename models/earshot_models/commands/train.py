"""`earshot train`."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from earshot_models.commands.listing import list_dataset
from earshot_models.commands.output import prepare_folder
from earshot_models.commands.progress import shown
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.sound_reading import unreadable_sentence

if TYPE_CHECKING:
    from earshot_models.datasets.dataset import Clip
    from earshot_models.origins import SoundSource
    from earshot_models.recipe import Recipe

app = App()

_PARTS: dict[str, dict[str, Any]] = {
    "mask": {"mask": 0.0},
    "texture": {"texture": 0.0},
    "patches": {"patches": 0.0},
    "places": {"places": 0.0},
    "within-class": {"within_class": 0.0},
}
"""Parts that can be left out, besides augmentations and kinds of variation."""
_TEACHER_RATE = 16000


@app.default
def train(
    *,
    out: Path,
    data: list[Path] | None = None,
    kind: list[str] | None = None,
    share: list[float] | None = None,
    synthesized: float | None = None,
    voice_removed: bool = False,
    teacher: Path | None = None,
    teacher_rate: int = _TEACHER_RATE,
    teacher_tensor: list[str] | None = None,
    lessons: int | None = None,
    objective: str | None = None,
    rate: int | None = None,
    steps: int | None = None,
    batch: int | None = None,
    width: float | None = None,
    patience: int | None = None,
    without: list[str] | None = None,
    hold_out_fold: int | None = None,
    hold_out_group: str | None = None,
    seed: int = 0,
    name: str = "custom-1",
    cache: Path | None = None,
    overwrite: bool = False,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Train an encoder without labels, and export it for phones.

    Repeat the same command to continue an interrupted run.

    Args:
        out: Folder for encoder.tflite, checkpoints and TensorBoard logs.
        data: Folder of a data set; give it once for each. Labels are not read.
        kind: Kind of each data set, in their order; guessed where not given.
        share: Share of each data set in a batch, in their order; equal by default.
        synthesized: Share of synthesized scenes in a batch, 0 to 1.
        voice_removed: Take voices out of the sound first.
        teacher: Larger encoder to learn from: a LiteRT or a Keras file.
        teacher_rate: Samples per second that the teacher hears.
        teacher_tensor: Tensor of the teacher to learn: an index or name in LiteRT, a layer's name
            in Keras; give it once for each. By default the one named as an embedding.
        lessons: Seconds of sound that the teacher embeds.
        objective: Objective: nt-xent, momentum or bilinear without a teacher; distillation with
            one.
        rate: Samples per second that phones hear: 8000 or 16000.
        steps: Batches in all.
        batch: Pairs in a batch.
        width: Factor on the network's channels.
        patience: Epochs without better retrieval, after which training ends.
        without: Part to leave out, for ablation: an augmentation, a kind of variation of the
            lessons, mask, texture, patches, places or within-class.
        hold_out_fold: Fold, as the data sets define them, that is left out.
        hold_out_group: Speaker or location that is left out.
        seed: Seed of the training.
        name: Name by which phases and phones refer to the encoder.
        cache: Folder for decoded sound and the teacher's output, reused by later runs.
        overwrite: Replace the encoder files where --out has them.
        as_json: Print the results as JSON, and nothing else.
    """
    if teacher is None:
        asked = {
            "--teacher-rate": teacher_rate != _TEACHER_RATE,
            "--teacher-tensor": teacher_tensor is not None,
            "--lessons": lessons is not None,
        }
        named = ", ".join(name for name, is_asked in asked.items() if is_asked)
        if named:
            raise InvalidInputError(f"{named}: for learning from a teacher; add --teacher FILE")
    if not data and synthesized != 1:
        raise InvalidInputError(
            "--data: name a folder of sound, or learn from synthesized scenes alone with "
            "--synthesized 1"
        )
    from earshot_models import recipe as recipes
    from earshot_models.distillation.teacher import open_teacher

    larger = None if teacher is None else open_teacher(teacher, teacher_rate, teacher_tensor or ())
    recipe = recipes.CONTRAST if larger is None else recipes.TAUGHT
    recipe = replace(
        recipe, objective=objective or recipe.objective, voice_removed=voice_removed, seed=seed
    )
    schedule = replace(recipe.schedule, patience=patience)
    if steps is not None:
        schedule = replace(schedule, steps=steps)
    given = {
        "batch": batch,
        "width": width,
        "synthesized": synthesized,
        "lessons": lessons,
        "rate": rate,
    }
    given = {option: value for option, value in given.items() if value is not None}
    recipe = replace(recipe, schedule=schedule, **given)  # type: ignore[arg-type]
    for part in without or ():
        recipe = _without(recipe, part)
    sources = _sources(data or [], kind, share, hold_out_fold, hold_out_group)
    prepare_folder(
        out, ("encoder.tflite", "encoder-float32.tflite"), overwrite, resumes=("checkpoint", "logs")
    )
    with shown() as progress:
        credits_ = _credits(data or [])
        trained = recipes.train_encoder(
            sources,
            out,
            recipe,
            name,
            teacher=larger,
            cache=cache,
            credits_=credits_,
            progress=progress,
        )
    size = trained.int8.stat().st_size
    if as_json:
        files = {"encoder": str(trained.int8), "float32": str(trained.float32), "bytes": size}
        left_out = {"count": len(trained.unreadable), "files": trained.unreadable}
        print(json.dumps({**files, "unreadable": left_out, "history": trained.history}, indent=2))
    else:
        if trained.unreadable:
            print(unreadable_sentence(trained.unreadable))
        last = trained.history[-1]
        print(f"{trained.int8}: {size} bytes")
        print(f"loss {last['loss']:.3f}, retrieval {last['retrieval']:.3f}")


def _without(recipe: Recipe, part: str) -> Recipe:
    """Return the recipe without one part of it."""
    from earshot_models.distillation.lessons import CHANCES

    if part in _PARTS:
        return replace(recipe, **_PARTS[part])
    if part in CHANCES:
        variation = replace(recipe.variation, **{part: 0.0})  # type: ignore[arg-type]  # no pair
        return replace(recipe, variation=variation)
    try:
        return replace(recipe, augmentations=recipe.augmentations.without(part))
    except InvalidParametersError as error:
        raise InvalidParametersError(f"{error}; and {', '.join((*CHANCES, *_PARTS))}") from None


def _sources(
    folders: list[Path],
    kinds: list[str] | None,
    shares: list[float] | None,
    fold: int | None,
    group: str | None,
) -> list[SoundSource]:
    from earshot_models.origins import SoundSource

    for option, values in (("--kind", kinds), ("--share", shares)):
        if values and len(values) != len(folders):
            raise InvalidParametersError(
                f"{option} must be given once for each of {len(folders)} --data, or not at all"
            )

    def heard(clip: Clip) -> bool:
        return (fold is None or clip.fold != fold) and clip.group != group

    given = zip(folders, kinds or repeat(None), shares or repeat(1.0), strict=False)
    return [
        SoundSource(list_dataset(path, kind).where(heard), share) for path, kind, share in given
    ]


def _credits(folders: list[Path]) -> str:
    """Return the credits and licences of the data sets."""
    return "\n\n".join(
        f"{folder.name}/{name}\n\n{_text(folder / name)}"
        for folder in folders
        for name in ("CREDITS.txt", "LICENSE", "LICENSE.txt")
        if (folder / name).is_file()
    )


def _text(file: Path) -> str:
    """Decode a text of credits, which may be in a legacy encoding."""
    content = file.read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")  # has a letter for every byte
