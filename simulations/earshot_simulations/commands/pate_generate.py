"""`earshot pate generate`: a generator of sound for a budget, and sounds of a published one."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from earshot_models.commands.listing import say_unheard
from earshot_models.commands.output import prepare_folder
from earshot_models.commands.progress import shown
from earshot_protocol import checks
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.files import replace_file
from earshot_simulations.generation.budgets import NoisyMax
from earshot_simulations.generation.kinds import (
    DEFAULTS,
    TrainingKind,
    TrainingRequest,
    TrainingSize,
)

_SAMPLES = 12


def generate(
    *,
    out: Path,
    kind: TrainingKind | None = None,
    clips: Path | None = None,
    public: Path | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    teachers: int | None = None,
    mechanism: NoisyMax | None = None,
    steps: int | None = None,
    batch: int | None = None,
    published: Annotated[Path | None, Parameter(name="--from")] = None,
    samples: int = _SAMPLES,
    seed: int = 0,
    overwrite: bool = False,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Train a generator for a budget, or make samples of a published one, to listen to.

    Args:
        out: New folder, or one in which a run was cut short.
        kind: Kind of generator, which says how it is trained.
        clips: Folder of sensitive sound; the generator learns from one second of each file.
        public: Folder of public sound; aae learns from it, all others start with it.
        epsilon: Budget ε of the whole training, for each clip.
        delta: Value of δ for the whole training, below 1 over the clips.
        teachers: Teachers of pate-gan, each with a part of the clips.
        mechanism: Voting rule of pate-gan: gnmax (the default) or lnmax.
        steps: Steps of the training, fixed before it begins.
        batch: Clips of a step; for pate-gan, samples that a step votes on.
        published: Published generator.npz; only make samples of it.
        samples: Sounds to make, as WAV files and on a page.
        seed: Seed for samples and for learning from public sound; never for noise.
        overwrite: Replace the files of this command where --out has them.
        as_json: Print result.json, and nothing else.
    """
    checks.whole("samples", samples, 1, 10_000)
    checks.whole("seed", seed, 0)
    if published is not None:
        training = (kind, clips, public, epsilon, delta, teachers, mechanism, steps, batch)
        if any(each is not None for each in training):
            raise InvalidInputError(
                "--from: makes samples of a generator as it is; leave out what trains one"
            )
        _sample(published, samples, seed, out, overwrite, as_json)
        return
    if kind is None:
        raise InvalidInputError(
            f"--kind: name one of {', '.join(TrainingKind)}, or a published generator with --from"
        )
    usual = DEFAULTS[kind]
    if kind is TrainingKind.PATE_GAN and mechanism is None:
        mechanism = NoisyMax.GNMAX
    size = TrainingSize(
        usual.steps if steps is None else steps, usual.batch if batch is None else batch
    )
    request = TrainingRequest(kind, size, epsilon, delta, teachers, mechanism)
    _train(request, clips, public, samples, seed, out, overwrite, as_json)


def _train(
    request: TrainingRequest,
    clips: Path | None,
    public: Path | None,
    samples: int,
    seed: int,
    out: Path,
    overwrite: bool,
    as_json: bool,
) -> None:
    from earshot_simulations.generation import report, result, run

    plan = run.planned(request, clips, public)
    for listed in filter(None, (plan.learned, plan.compared)):
        say_unheard(listed)
    prepare_folder(out, result.FILES, overwrite, resumes=[run.WORK])
    try:
        with shown() as progress:
            trained = run.train(plan, out, progress, seed)
            found, why = result.distance(trained)
    except KeyboardInterrupt:
        print(f"finished work is in {out / run.WORK}; the same command goes on from there")
        sys.exit(130)
    from earshot_models.generators import generator_file

    generator = trained.generator
    generator_file.save(generator, out / result.GENERATOR)
    replace_file(out / result.REPORT, report.report(trained, found, why))
    figures = result.figures(generator.origin, samples, seed)
    figures |= result.training_figures(trained, found, why)
    result.write_json(figures, out)
    sounds = result.write_samples(generator, samples, seed, out)
    facts = [("Clips learned from", str(trained.clips)), ("TrainingKind", request.kind.value)]
    if trained.noise is not None:
        facts.append(("Noise", trained.noise.words))
    if found is not None:
        facts.append(("Fréchet distance from public sound", str(found.generated)))
        facts.append(("Of public sound from public sound", str(found.real)))
    page = result.write_page(generator.origin, sounds, facts, out)
    shutil.rmtree(out / run.WORK)
    if as_json:
        print(json.dumps(figures, indent=2, ensure_ascii=False, allow_nan=False))
        return
    print(f"{'origin':<22} {generator.origin.text}")
    if found is not None:
        print(f"{'from public sound':<22} {found.generated} (public from public {found.real})")
    print(f"{'may be noise':<22} any sample: listen first")
    for name, path in (("generator", out / result.GENERATOR), ("listen", page)):
        print(f"{name:<22} {path}")
    print(f"{'report':<22} {out / result.REPORT}")


def _sample(path: Path, samples: int, seed: int, out: Path, overwrite: bool, as_json: bool) -> None:
    from earshot_models.generators import generator_file
    from earshot_models.generators.spectrogram import SMALL
    from earshot_simulations.generation import result

    generator = generator_file.load(path, SMALL.shape)
    prepare_folder(out, result.SAMPLED, overwrite)
    sounds = result.write_samples(generator, samples, seed, out)
    figures = result.figures(generator.origin, samples, seed)
    result.write_json(figures, out)
    page = result.write_page(generator.origin, sounds, [("File", path.name)], out)
    if as_json:
        print(json.dumps(figures, indent=2, ensure_ascii=False, allow_nan=False))
        return
    print(f"{'origin':<22} {generator.origin.text}")
    print(f"{'may be noise':<22} any sample: listen first")
    print(f"{'listen':<22} {page}")
