"""Private students of spoken digits: Table 1 and Figure 5 of Yang et al. (Interspeech 2021)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earshot_protocol import checks
from earshot_protocol.progress import Progress, silent
from earshot_simulations.engine.processes import check_processes
from earshot_simulations.reporting.tables import markdown_table
from earshot_simulations.sweeps.estimate import Estimate, paired
from earshot_simulations.workers import in_parallel
from earshot_studies.kit.claims import Claim, claims_table, verdicts
from earshot_studies.kit.outcome import Reproduction, Row, means, with_interval
from earshot_studies.kit.pictures import curve
from earshot_studies.kit.printed import printed_figures
from earshot_studies.pate_aae import public_embedding
from earshot_studies.pate_aae.answers import AnswerNoise
from earshot_studies.pate_aae.claims import added_epsilon, measured_epsilon, proven_epsilon
from earshot_studies.pate_aae.public_embedding import NOTE, PublicEmbedding
from earshot_studies.pate_aae.right_labels import (
    TEACHERS,
    WORDS,
    best_accuracy,
    most_accuracy,
    printed_right_labels,
)
from earshot_studies.pate_aae.split import Split, open_sounds, open_split
from earshot_studies.pate_aae.study import Cell, ClipStudy, StudySize
from earshot_studies.pate_aae.systems import Makers, System

_PRINTED = printed_figures(__package__)
FID, AHEAD = (
    {
        System[name.upper()]: {float(epsilon): unit * each for epsilon, each in own.items()}
        for name, own in _PRINTED[table].items()
    }
    for table, unit in (("fid", 1), ("ahead", 0.01))
)
"""Fréchet distances of Table 1, and accuracy by which AAE is ahead (4.2), by system and ε."""
ACCURACY: Mapping[System, float] = {
    System[name.upper()]: own for name, own in _PRINTED["accuracy"].items()
}

ACCURACIES = {noise: f"{noise.name.lower()}_accuracy" for noise in AnswerNoise}
"""Columns of accuracy, by the noise on the answers."""
KEPT = {noise: f"{noise.name.lower()}_kept" for noise in AnswerNoise}
"""Columns of the share of answers that noise leaves unchanged."""
SCALES = {noise: f"{noise.name.lower()}_scale" for noise in AnswerNoise}
"""Columns of the scale of the noise, in votes."""

_MEASURED = ("fid", "fid_real", "agreement", *KEPT.values(), *ACCURACIES.values())


class Measurements(NamedTuple):
    """All measurements of a study.

    Attributes:
        cells: Cells of every system, budget and seed.
        references: Accuracies without generated clips, for every seed.
        table: Means of the cells over seeds.
    """

    cells: Sequence[Cell]
    references: Sequence[Cell]
    table: Sequence[Row]


def averaged(cells: Sequence[Cell]) -> list[Row]:
    """Return means over seeds with half of their 95 % intervals, by system and ε."""
    groups: dict[tuple[str, float], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((str(cell["system"]), float(cell["epsilon"])), []).append(cell)
    found: list[Row] = []
    for (system, epsilon), group in groups.items():
        printed = FID.get(System(system), {}).get(epsilon, "")
        row: Row = {"system": system, "epsilon": epsilon, "seeds": len(group)}
        row |= {"theirs_fid": printed, "labels_epsilon": group[0]["labels_epsilon"]}
        row |= {name: group[0][name] for name in SCALES.values()}
        found.append(row | means(group, _MEASURED))
    return found


def difference(
    cells: Sequence[Cell], column: str, one: System, other: System, epsilon: float
) -> Estimate:
    """Return one system's figure minus another's under one budget, paired by seed."""
    first, second = (_by_seed(cells, column, system, epsilon) for system in (one, other))
    return paired([first[seed] for seed in first], [second[seed] for seed in first])


def ratio(cells: Sequence[Cell], one: System, other: System, epsilon: float) -> float:
    """Return the ratio of the mean distances of two systems under one budget."""
    first, second = (_by_seed(cells, "fid", system, epsilon) for system in (one, other))
    return sum(first.values()) / sum(second[seed] for seed in first)


def _by_seed(
    cells: Sequence[Cell], column: str, system: System, epsilon: float
) -> dict[int, float]:
    return {
        int(cell["seed"]): float(cell[column])
        for cell in cells
        if cell["system"] == system and cell["epsilon"] == epsilon
    }


_MANY = 10_000
_PAIRS = (
    (System.PRINTED, System.PATE_GAN),
    (System.PRINTED, System.DP_GAN),
    (System.PUBLIC, System.PATE_GAN),
    (System.PUBLIC, System.DP_GAN),
    (System.PRIVATE, System.PATE_GAN),
    (System.PRIVATE, System.DP_GAN),
    (System.PATE_GAN, System.DP_GAN),
)
"""Pairs of systems, the first of which is claimed to be ahead."""
_BY_START = (
    (System.STARTED_PRIVATE, System.PRIVATE),
    (System.STARTED_PATE_GAN, System.PATE_GAN),
    (System.STARTED_DP_GAN, System.DP_GAN),
    (System.STARTED_PRIVATE, System.PUBLIC),
    (System.STARTED_PATE_GAN, System.PUBLIC_GAN),
    (System.STARTED_DP_GAN, System.PUBLIC_GAN),
    (System.STARTED_PRIVATE, System.STARTED_PATE_GAN),
    (System.STARTED_PRIVATE, System.STARTED_DP_GAN),
    (System.STARTED_PATE_GAN, System.STARTED_DP_GAN),
)
"""Pairs that show whether a start helps, whether private clips help a start, and which system is
ahead with it."""


OTHER_SOUND = "other sound in another embedding"
"""Difference from the paper's table and figure that explains other numbers."""


def claims(
    cells: Sequence[Cell], epsilons: Sequence[float], pairs: Sequence[tuple[System, System]]
) -> list[Claim]:
    """Return the claims that the first of each pair is ahead under each budget, in both measures.

    Args:
        cells: Cells of all seeds.
        epsilons: Budgets.
        pairs: Pairs of systems.
    """
    found = []
    accuracy = ACCURACIES[AnswerNoise.GAUSSIAN]
    for one, other in pairs:
        said = f"*{one}* is ahead of *{other}*"
        first, second = FID.get(one, {}), FID.get(other, {})
        nearer = {epsilon: second[epsilon] - first[epsilon] for epsilon in first.keys() & second}
        points = AHEAD.get(other, {}) if one is System.PRINTED else {}
        for epsilon in sorted(epsilons):
            for what, theirs, ours in (
                ("distance: second − first", nearer.get(epsilon), ("fid", other, one)),
                ("accuracy: first − second", points.get(epsilon), (accuracy, one, other)),
            ):
                found.append(
                    Claim(said, f"ε {epsilon:g}, {what}", theirs, difference(cells, *ours, epsilon))
                )
    return found


def _note(found: Measurements, study: ClipStudy) -> str:
    """Return the note in Markdown."""
    size, split = study.size, study.split
    ahead, started = (claims(found.cells, size.epsilons, pairs) for pairs in (_PAIRS, _BY_START))
    least, little = best_accuracy(0.01), best_accuracy(0.1)
    return f"""# Private students of spoken digits

After Table 1 and Figure 5 of PATE-AAE (Yang et al., Interspeech 2021), on other data: orderings and
ratios can be compared, figures cannot.

All {len(split.private):,} clips of all speakers but {split.speaker} are private, the
{len(split.public):,} of {split.speaker}, on which every choice was made, are public, and
{len(split.test):,} other takes of the private speakers are for tests. {size.teachers} teachers of
{len(split.private) // size.teachers} clips each vote on K = {size.queries} generated clips, from
which students learn. {_seeds(found)} A budget (δ = {size.delta:g} in all) protects one private
clip, present or absent. Where generators spend a budget, they get half of it and labels the other
half. *From a public start*, which the paper does not have, continues from networks of
{split.speaker}'s clips.

{_recipes(study)}

The AAE *as printed* is fitted to every private clip: **it is not private**, whatever its labels
cost. It is shown for comparison with their figures and must not be published.

## Who is ahead

{verdicts(ahead)}

{claims_table(ahead, "Yang et al.", OTHER_SOUND)}

*Accuracy* is that of students of GNMax within the whole budget. Differences are paired by seed,
with 95 % intervals over seeds; theirs come from other sound in another embedding.

## Does a public start help?

{verdicts(started)}

{claims_table(started, "statement", "it is ours, the paper has no such start")}

## Table 1: Fréchet distance to private clips

{_distances(found)}

Distances are measured in a {study.embedding.dimensions}-dimensional embedding that was fitted on
public sound. Between halves of the real clips it is {_real(found)}. Only *AAE, as printed* is
trained like theirs. Its training does not use ε, so its distance cannot vary with it; theirs falls
from 30.2 to 24.0.

{_ratios(found, size.epsilons)}

## Figure 5: accuracy of students

{_references(found)}

{_accuracies(found)}

*As printed* is Laplace noise of scale K/2ε for the whole ε. *No noise* uses the exact votes.
Theirs at ε = 100: {", ".join(f"{name} {each:.2f} %" for name, each in ACCURACY.items())}.

{_chance(found, len(split.classes))}

## Privacy and accuracy at a scale of K/2ε

{_scales(study)}

A query costs 2/b at a scale b, so K of them cost 4ε by addition, and less at δ = {size.delta:g}
where K is large. *At least* is measured: one query of two classes, K times, with the worst of
several leads.

If all {TEACHERS} teachers were right about {WORDS} words, this share of the labels would be right
at that scale, and a student's accuracy would be at most that of the last column:

{_figure_5()}

For any K from {WORDS} on, that is at most {least:.2f} at ε = 0.01 and {little:.2f} at ε = 0.1:
their Figure 5 cannot come from this noise.

## Why they differ

- Their teachers use an encoder that is fitted to the private clips, so one clip may move all votes,
  and no ε holds for the whole.
- {len(split.private):,} clips are few: at ε = 0.5 the noise of DP-SGD is many times a batch's
  gradient, while their 105,829 clips would suffice.
- All seeds share one test set. Its standard error, {100 * (0.25 / len(split.test)) ** 0.5:.1f}
  points at 50 %, is not part of any interval.
- Distances are measured by an experimenter, with the private clips ({NOTE}).
"""


def _recipes(study: ClipStudy) -> str:
    words = {recipe: [] for recipe in study.recipes.values()}  # type: dict[str, list[str]]
    for system, recipe in study.recipes.items():
        words[recipe].append(str(system))
    return "\n".join(f"- *{'*, *'.join(names)}*: {recipe}." for recipe, names in words.items())


def _seeds(found: Measurements) -> str:
    count = len(found.references)
    return f"{count} seed{'' if count == 1 else 's'}."


def _references(found: Measurements) -> str:
    names = {
        "central": "trained on all private clips with their labels: not private",
        "public": "trained on the public speaker's clips alone: free",
        "teacher": "one teacher",
        "vote": "vote of all teachers, without noise",
    }
    row = means(found.references, list(names))
    return markdown_table(
        [
            {"classifier": words, "accuracy on private speakers": with_interval(row, name)}
            for name, words in names.items()
        ],
        ("classifier", "accuracy on private speakers"),
    )


def _rows(found: Measurements, system: System) -> list[Row]:
    own = [row for row in found.table if row["system"] == system]
    return sorted(own, key=lambda row: float(row["epsilon"]))


def _distances(found: Measurements) -> str:
    rows: list[Row] = []
    for system in System:
        row: Row = {"system": str(system)}
        for each in _rows(found, system):
            printed = each["theirs_fid"]
            row[f"ε {each['epsilon']:g}"] = (
                "" if printed == "" else f"{printed:g} / "
            ) + with_interval(each, "fid", 1)
        rows.append(row)
    return "Theirs / ours:\n\n" + markdown_table(rows, list(rows[0]))


def _real(found: Measurements) -> str:
    return with_interval(means(found.table, ("fid_real",)), "fid_real", 2)


def _ratios(found: Measurements, epsilons: Sequence[float]) -> str:
    rows: list[Row] = []
    for one, other in _PAIRS:
        row: Row = {"ratio of distances": f"{one} over {other}"}
        for epsilon in sorted(epsilons):
            own = FID.get(one, {}).get(epsilon), FID.get(other, {}).get(epsilon)
            printed = "" if own[0] is None or own[1] is None else f"{own[0] / own[1]:.2f} / "
            row[f"ε {epsilon:g}"] = printed + f"{ratio(found.cells, one, other, epsilon):.2f}"
        rows.append(row)
    return markdown_table(rows, list(rows[0]))


def _accuracies(found: Measurements) -> str:
    rows: list[Row] = [
        {
            "system": str(system),
            "ε": f"{row['epsilon']:g}",
            **{str(noise): with_interval(row, ACCURACIES[noise]) for noise in _order()},
            "GNMax: σ": f"{float(row[SCALES[AnswerNoise.GAUSSIAN]]):.3g}",
            "answers unchanged": with_interval(row, KEPT[AnswerNoise.GAUSSIAN], 2),
        }
        for system in System
        for row in _rows(found, system)
    ]
    return markdown_table(rows, list(rows[0]))


def _order() -> tuple[AnswerNoise, ...]:
    return AnswerNoise.GAUSSIAN, AnswerNoise.LAPLACE, AnswerNoise.PRINTED, AnswerNoise.NONE


def _chance(found: Measurements, classes: int) -> str:
    """State whether students guess at ε of 0.1 and less, for systems that keep their budget."""
    chance, name = 1 / classes, ACCURACIES[AnswerNoise.GAUSSIAN]
    rows = [
        row
        for row in found.table
        if float(row["epsilon"]) <= 0.1 and row["system"] != System.PRINTED
    ]
    if not rows:
        return f"Chance is {chance:.2f}."
    best = max(rows, key=lambda row: float(row[name]))
    held = sum(
        abs(float(row[name]) - chance) <= float(row[f"{name}_interval_95"] or 0.0) for row in rows
    )
    guessing = float(np.mean([float(row[name]) for row in rows])) < 1.5 * chance
    return (
        f"Chance is {chance:.2f}. **At ε of 0.1 and less, students that keep the budget are "
        f"{'guessing' if guessing else 'better than chance'}**: {held} of {len(rows)} intervals "
        f"contain chance; the best is {best['system']} at ε {best['epsilon']:g} with "
        f"{with_interval(best, name)}."
    )


def _scales(study: ClipStudy) -> str:
    rows: list[Row] = []
    for queries in dict.fromkeys((study.size.queries, _MANY)):
        for epsilon in sorted(study.size.epsilons):
            low = measured_epsilon(queries, epsilon, study.size.delta, study.size.teachers).low
            most = proven_epsilon(queries, epsilon, study.size.delta)
            holds = "yes" if most <= epsilon else "no" if low > epsilon else "not proven"
            rows.append(
                {
                    "K": f"{queries:,}",
                    "claimed ε": f"{epsilon:g}",
                    "by addition, δ = 0": f"{added_epsilon(epsilon):g}",
                    "at most": f"{most:.3g}",
                    "at least": f"{low:.3g}",
                    "claim holds": holds,
                }
            )
    return markdown_table(rows, list(rows[0]))


def _figure_5() -> str:
    rows: list[Row] = [
        {
            "ε": f"{epsilon:g}",
            "K": f"{queries:,}",
            "right labels": f"{printed_right_labels(epsilon, queries):.3f}",
            "accuracy at most": f"{most_accuracy(epsilon, queries):.3f}",
        }
        for epsilon in (0.01, 0.1, 1.0, 10.0, 100.0)
        for queries in (WORDS, TEACHERS, _MANY)
    ]
    return markdown_table(rows, list(rows[0]))


_COLOURS = {
    System.PRINTED: "#d62728",
    System.PUBLIC: "#1f77b4",
    System.PRIVATE: "#2ca02c",
    System.PATE_GAN: "#9467bd",
    System.DP_GAN: "#7f7f7f",
    System.PUBLIC_GAN: "#17becf",
    System.STARTED_PRIVATE: "#2ca02c",
    System.STARTED_PATE_GAN: "#9467bd",
    System.STARTED_DP_GAN: "#7f7f7f",
}
_DASHED = (
    System.PUBLIC_GAN,
    System.STARTED_PRIVATE,
    System.STARTED_PATE_GAN,
    System.STARTED_DP_GAN,
)
"""Systems whose curves are dashed; their counterparts without a start have the same colours."""
_SAMPLES = 4


def shown(epsilons: Sequence[float]) -> tuple[float, ...]:
    """Return the budgets whose samples are drawn: second smallest, as in Figure 4, and largest."""
    ordered = sorted(epsilons)
    return tuple(dict.fromkeys((ordered[min(1, len(ordered) - 1)], ordered[-1])))


def _draw(
    found: Measurements,
    size: StudySize,
    samples: Mapping[tuple[System, float], NDArray[np.float32]],
    path: Path,
) -> None:
    """Write the picture.

    Args:
        found: Measurements to draw.
        size: Size of the study, of which the title names the number of queries.
        samples: Some samples of each system under some budgets, (samples, frames, bands).
        path: Path of the PNG.
    """
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(14, 16), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=(1, 1.9))
    distance, gaussian, printed = above.subplots(1, 3)
    _curves(distance, found.table, "fid")
    for system, own in FID.items():
        distance.plot(list(own), list(own.values()), ":", color=_COLOURS[system])
    real = float(np.mean([float(row["fid_real"]) for row in found.table]))
    distance.axhline(real, color="black", linewidth=1)
    distance.set_title("Fréchet distance to private clips\ndotted: theirs, in another embedding")
    distance.set_yscale("log")
    for axis, noise, words in (
        (gaussian, AnswerNoise.GAUSSIAN, "GNMax within the budget"),
        (printed, AnswerNoise.PRINTED, "LNMax at scale K/2ε, as printed"),
    ):
        _curves(axis, found.table, ACCURACIES[noise])
        for name, style in (("central", "--"), ("public", ":")):
            level = float(np.mean([float(each[name]) for each in found.references]))
            axis.axhline(level, color="black", linestyle=style, linewidth=1, label=name)
        axis.axhline(0.1, color="black", linewidth=0.5)
        axis.set_ylim(0, 1)
        axis.set_title(f"accuracy of students, K = {size.queries}\n{words}")
    # Below the line of the model trained on all data.
    gaussian.legend(fontsize=7, handlelength=4, loc="upper left", bbox_to_anchor=(0, 0.96))
    _grid(below, samples)
    figure.savefig(path, dpi=100)


def _curves(axis: Any, table: Sequence[Row], name: str) -> None:
    for place, system in enumerate(System):
        rows = [row for row in table if row["system"] == system]
        rows.sort(key=lambda row: float(row["epsilon"]))
        # Shifted a little, so that intervals do not overlap.
        at = [float(row["epsilon"]) * 1.06 ** (place - 4) for row in rows]
        curve(
            axis, at, rows, name, marker="o", markersize=4, capsize=3, color=_COLOURS[system],
            label=str(system), linestyle="--" if system in _DASHED else "-",
        )  # fmt: skip
    axis.set_xscale("log")
    axis.set_xlabel("ε, both generator and labels")


def _grid(figure: Any, samples: Mapping[tuple[System, float], NDArray[np.float32]]) -> None:
    """Draw samples of each system in a row, budget after budget; time runs to the right."""
    epsilons = list(dict.fromkeys(epsilon for _, epsilon in samples))
    axes = figure.subplots(len(System), _SAMPLES * len(epsilons), squeeze=False)
    for row, system in zip(axes, System, strict=True):
        pictures = [each for epsilon in epsilons for each in samples[system, epsilon][:_SAMPLES]]
        for place, axis in enumerate(row):
            axis.set_xticks([])
            axis.set_yticks([])
            if place < len(pictures):
                axis.imshow(
                    pictures[place].T, origin="lower", aspect="auto", vmin=-1, vmax=1,
                    cmap="magma",
                )  # fmt: skip
        row[0].set_ylabel(str(system).replace(", from", ",\nfrom"), fontsize=8)
    for place, epsilon in enumerate(epsilons):
        axes[0][place * _SAMPLES].set_title(f"samples, ε = {epsilon:g}", loc="left", fontsize=9)


NAME = "pate-aae"

_DIGITS, _SOUNDS = "fsdd", "free_sounds"


def opened(
    data: Path,
    work: Path,
    size: StudySize,
    progress: Progress,
    speaker: str | None = None,
    makers: Makers | None = None,
    recipes: Mapping[System, str] | None = None,
) -> ClipStudy:
    """Open the study of a folder's digits; invalid inputs are refused before any training.

    Args:
        data: Folder that holds `fsdd` and `free_sounds`.
        work: Folder that keeps cells, decoded sound and the embedding.
        size: Amount of training and of queries.
        progress: Callback for progress.
        speaker: Public speaker; None for the first by name.
        makers: Makers of the generators; None for those of `pate_aae.makers`.
        recipes: Recipe of each generator, as text; needed with other makers.

    Raises:
        DatasetError, InvalidInputError, InvalidParametersError: `open_split` or `ClipStudy` refuses
            its arguments.
    """
    split = open_split(data / _DIGITS, speaker, work / "sound", progress)
    size.check(len(split.private))
    if makers is None or recipes is None:
        from earshot_studies.pate_aae import makers as offered

        own = offered.GeneratorRecipes(teachers=offered.critics(size.teachers))
        makers, recipes = offered.makers(own), own.described
    embedding = _embedding(data / _SOUNDS, split, work, progress)
    return ClipStudy(split, embedding, size, makers, recipes, work, progress)


def reproduce(study: ClipStudy, seeds: int, processes: int = 1) -> Reproduction:
    """Measure every system under every budget with several seeds.

    Args:
        study: Study to measure.
        seeds: Number of repetitions, each with its own teachers, generators and noise.
        processes: Number of processes for training.

    Raises:
        InvalidParametersError: There are no seeds or processes, or more processes than this machine
            can use.
    """
    numbers = range(1, checks.whole("seeds", seeds) + 1)
    _measure(study, numbers, check_processes("processes", processes))
    references: list[Cell] = [study.references(seed) for seed in numbers]
    cells = [cell for seed in numbers for system in System for cell in study.cells(system, seed)]
    found = Measurements(cells, references, averaged(cells))
    samples = {
        (system, epsilon): study.pictures(system, epsilon, 1)
        for system in System
        for epsilon in shown(study.size.epsilons)
    }
    return Reproduction(
        NAME,
        found.table,
        lambda path: _draw(found, study.size, samples, path),
        _note(found, study),
    )


def _measure(study: ClipStudy, seeds: range, processes: int) -> None:
    """Measure and keep all cells, in parts of one seed and of systems with or without a start."""
    shown = study if processes == 1 else replace(study, progress=silent)
    parts = [
        (shown, seed, tuple(system for system in System if system.started is started))
        for seed in seeds
        for started in (False, True)
    ]
    done, total = 0, len(seeds) * len(System)
    study.progress("systems", done, total)
    for number in in_parallel(_part, parts, processes, ordered=False):
        done += number
        study.progress("systems", done, total)


def _part(study: ClipStudy, seed: int, systems: tuple[System, ...]) -> int:
    """Measure some systems with one seed, and return their number."""
    if not systems[0].started:
        study.references(seed)
    for system in systems:
        study.cells(system, seed)
    return len(systems)


def _embedding(data: Path, split: Split, work: Path, progress: Progress) -> PublicEmbedding:
    """Fit the embedding to public sound and to the public speaker's digits."""
    sounds = open_sounds(data, work / "sound", progress)
    digits = [f"digit {split.classes[label]}" for label in split.public.labels]
    pictures = np.concatenate([sounds.pictures, split.public.pictures])
    return public_embedding.kept(work, pictures, [*sounds.names, *digits])
