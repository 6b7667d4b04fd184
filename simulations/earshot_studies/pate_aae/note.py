"""The note of PATE-AAE: theirs, ours by their accounting, ours soundly accounted, and why."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from earshot_simulations.auditing.printed_scale import (
    added_epsilon,
    measured_epsilon,
    proven_epsilon,
)
from earshot_simulations.generation.public_embedding import NOTE
from earshot_simulations.reporting.tables import markdown_table
from earshot_studies.kit.outcome import Row, means
from earshot_studies.pate_aae import printed as theirs
from earshot_studies.pate_aae.answers import Noise
from earshot_studies.pate_aae.right_labels import (
    TEACHERS,
    WORDS,
    most_accuracy,
    printed_right_labels,
)
from earshot_studies.pate_aae.rows import (
    ACCURACIES,
    KEPT,
    SCALES,
    Found,
    difference,
    ratio,
    said,
    verdict,
)
from earshot_studies.pate_aae.study import Study
from earshot_studies.pate_aae.systems import System

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
"""The first of which is said to be ahead."""
_STARTED = (
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
"""What a start gives, what private clips add to it, and who is ahead with it."""


def note(found: Found, study: Study) -> str:
    """The whole Markdown."""
    size, split = study.size, study.split
    return f"""# Private students of spoken digits

After Table 1 and Figure 5 of PATE-AAE (Yang et al., Interspeech 2021). Their data are not here:
orderings and ratios can be compared, figures cannot.

{len(split.private):,} clips of all speakers but {split.speaker} are private, {len(split.public):,}
of {split.speaker} are public; {len(split.test):,} clips of the private speakers, takes that nobody
learns from, test. {size.teachers} teachers learn from {len(split.private) // size.teachers} private
clips each, of raw log-mel pictures, and vote on K = {size.queries} generated clips; students learn
from these and from the answers. {_seeds(found)} All that was chosen was chosen on
{split.speaker}'s clips. δ = {size.delta:g} in all. Generators:

{_recipes(study)}

A budget is for one private clip that is there or not: it changes one teacher, whose vote may move
to another class. A generator that learns from private clips (AAE by DP-SGD, PATE-GAN, DP-GAN) gets
half of ε and half of δ, its labels the other halves, which add up. What is public costs nothing:
its labels get all. *From a public start* is what the paper does not have: the same three, each
started with networks that learned {split.speaker}'s clips, which go on being heard beside the
private ones, the more the more noise these need. What public sound alone gives stands beside it.

The AAE *as printed* has fitted every private clip: whatever its labels cost, **it is not private**,
and it is here to stand beside their figures alone.

## Without generated clips

{_references(found)}

## Table 1: Fréchet distance to private clips

{_distances(found)}

Theirs is in another embedding of other sound, and of ours only *AAE, as printed* is trained as
theirs: its generator never meets ε, so its distance cannot vary with it; in their table it does,
from 30.2 to 24.0. Ours is a {study.embedding.dimensions}-dimensional embedding that was fitted on
public sound and the public speaker. Real clips from real clips (halves): {_real(found)}.

{_ratios(found, study.size.epsilons)}

## Figure 5: accuracy of students

By GNMax, labels and generator together within (ε, δ); what LNMax gives within the same; and *as
printed*, Laplace noise of scale K/2ε for the whole ε, generators as before. *No noise* is what the
same generated clips give with the votes' own answers.

{_accuracies(found)}

{_chance(found, len(split.classes))}

Their accuracy is {", ".join(f"{name} {each:.2f} %" for name, each in theirs.ACCURACY.items())} at
ε = 100, and {_theirs_ahead()}.

## Who is ahead

The difference of the first and the second, in pairs of a seed (of distances the second less the
first, so that above zero is as theirs everywhere), 95 % intervals.

{_comparisons(found, study.size.epsilons, _PAIRS, ("as theirs", "the other way round"))}

## What a public start gives

The same differences: first of a start against none, then of private clips, heard from a start,
against public clips alone, then of the three with a start. Above zero the first is better.

{_comparisons(found, study.size.epsilons, _STARTED, ("better", "worse"))}

## What a scale of K/2ε gives

A query costs 2/b at a scale b, so K of them 4ε by addition; at δ = {size.delta:g} divergences
compose to less where K is large. *At least* is measured, exactly: one query of two classes K times
over, the worst of some leads. For K = {size.queries}, and for {_MANY:,}:

{_scales(study)}

## Their Figure 5 cannot be of this noise

Were all {TEACHERS} teachers right and of one mind about {WORDS} words, so many of K labels would be
right at that scale. A student whose clips fall cleanly into words, and that names each word by its
own clips' labels, is right with the probability in the last column at most:

{_figure_5()}

Whatever K from {WORDS} on, it is {_best(0.01):.2f} at ε = 0.01 and {_best(0.1):.2f} at ε = 0.1.
From ε = 1 on it depends on K, which the paper does not give; equation 8 has as many as teachers.

## Why they differ

- Their generator has fitted the private clips and their teachers learn from its encoder, so that
  one clip moves all votes: no ε holds of the whole. With a generator that is public or private,
  samples are of another speaker or of noise, and that is what privacy costs here.
- 1,800 clips are few: noise of DP-SGD on {len(split.private):,} clips at ε 0.5 is many times a
  batch's gradient, where 105,829 would bear it.
- Intervals are Student's at 95 % over seeds (parts, generators, noise); the test's
  {len(split.test)} clips are the same for all. One standard error of these is
  {100 * (0.25 / len(split.test)) ** 0.5:.1f} points at 50 %, and it is in none of the intervals.
- Distances are measured with the private clips, by an experimenter: they are no private release
  ({NOTE}).
"""


def _recipes(study: Study) -> str:
    words = {recipe: [] for recipe in study.recipes.values()}  # type: dict[str, list[str]]
    for system, recipe in study.recipes.items():
        words[recipe].append(str(system))
    return "\n".join(f"- *{'*, *'.join(names)}*: {recipe}." for recipe, names in words.items())


def _seeds(found: Found) -> str:
    count = len(found.references)
    return f"{count} seed{'' if count == 1 else 's'}."


def _references(found: Found) -> str:
    names = {
        "central": "all private clips with their labels: not private",
        "public": "the public speaker's clips alone: free",
        "teacher": "one teacher",
        "vote": "all teachers' vote, no noise",
    }
    row = means(found.references, list(names))
    return markdown_table(
        [
            {"who learns from": words, "accuracy on private speakers": said(row, name)}
            for name, words in names.items()
        ],
        ("who learns from", "accuracy on private speakers"),
    )


def _rows(found: Found, system: System) -> list[Row]:
    own = [row for row in found.table if row["system"] == system]
    return sorted(own, key=lambda row: float(row["epsilon"]))


def _distances(found: Found) -> str:
    rows: list[Row] = []
    for system in System:
        row: Row = {"system": str(system)}
        for each in _rows(found, system):
            printed = each["theirs_fid"]
            row[f"ε {each['epsilon']:g}"] = ("" if printed == "" else f"{printed:g} / ") + said(
                each, "fid", 1
            )
        rows.append(row)
    return "Theirs / ours:\n\n" + markdown_table(rows, list(rows[0]))


def _real(found: Found) -> str:
    return said(means(found.table, ("fid_real",)), "fid_real", 2)


def _ratios(found: Found, epsilons: Sequence[float]) -> str:
    rows: list[Row] = []
    for one, other in _PAIRS:
        row: Row = {"ratio of distances": f"{one} over {other}"}
        for epsilon in sorted(epsilons):
            own = theirs.FID.get(one, {}).get(epsilon), theirs.FID.get(other, {}).get(epsilon)
            printed = "" if own[0] is None or own[1] is None else f"{own[0] / own[1]:.2f} / "
            row[f"ε {epsilon:g}"] = printed + f"{ratio(found.cells, one, other, epsilon):.2f}"
        rows.append(row)
    return markdown_table(rows, list(rows[0]))


def _accuracies(found: Found) -> str:
    rows: list[Row] = [
        {
            "system": str(system),
            "ε": f"{row['epsilon']:g}",
            **{str(noise): said(row, ACCURACIES[noise]) for noise in _order()},
            "GNMax: σ": f"{float(row[SCALES[Noise.GAUSSIAN]]):.3g}",
            "answers unchanged": said(row, KEPT[Noise.GAUSSIAN], 2),
        }
        for system in System
        for row in _rows(found, system)
    ]
    return markdown_table(rows, list(rows[0]))


def _order() -> tuple[Noise, ...]:
    return Noise.GAUSSIAN, Noise.LAPLACE, Noise.PRINTED, Noise.NONE


def _chance(found: Found, classes: int) -> str:
    """Said plainly of budgets of 0.1 and less, for all that keeps them."""
    chance, name = 1 / classes, ACCURACIES[Noise.GAUSSIAN]
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
        f"hold chance; the best is {best['system']} at ε {best['epsilon']:g} with "
        f"{said(best, name)}."
    )


def _theirs_ahead() -> str:
    return "; ".join(
        f"AAE is ahead of {system} by "
        + ", ".join(f"{points:g} points at ε {epsilon:g}" for epsilon, points in own.items())
        for system, own in theirs.AHEAD.items()
    )


def _comparisons(
    found: Found,
    epsilons: Sequence[float],
    pairs: Sequence[tuple[System, System]],
    words: tuple[str, str],
) -> str:
    rows: list[Row] = []
    accuracy = ACCURACIES[Noise.GAUSSIAN]
    for one, other in pairs:
        for epsilon in sorted(epsilons):
            apart = difference(found.cells, "fid", other, one, epsilon)
            ahead = difference(found.cells, accuracy, one, other, epsilon)
            rows.append(
                {
                    "first, second": f"{one}; {other}",
                    "ε": f"{epsilon:g}",
                    "distance": str(apart),
                    "in distance": verdict(apart, *words),
                    "accuracy": str(ahead),
                    "in accuracy": verdict(ahead, *words),
                }
            )
    return markdown_table(rows, list(rows[0]))


def _scales(study: Study) -> str:
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


def _best(epsilon: float) -> float:
    """Over numbers of queries: whole labels of a word, of which more only mean more noise."""
    return max(most_accuracy(epsilon, WORDS * each) for each in range(1, 300))
