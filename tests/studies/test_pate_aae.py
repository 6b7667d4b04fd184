"""The reproduction of PATE-AAE on made-up speakers, with generators that learn nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
from support.echoes import HEARS_NOBODY, Makers, quiet
from support.refusals import refused
from support.reproduced import rows_of

from earshot_models.datasets.dataset import DatasetError
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.privacy.conversions import zcdp_epsilon
from earshot_simulations.sweeps.estimate import Estimate
from earshot_studies.kit.claims import CONFIRMED, REFUTED, UNDECIDED, Claim
from earshot_studies.kit.outcome import write
from earshot_studies.pate_aae import table_1
from earshot_studies.pate_aae.answers import AnswerNoise, answered, ensemble, scale
from earshot_studies.pate_aae.public_embedding import EmbeddingSettings, fit
from earshot_studies.pate_aae.split import LabelledClips, Split, open_sounds, open_split
from earshot_studies.pate_aae.study import Cell, ClipStudy, StudySize
from earshot_studies.pate_aae.systems import PublicationBudget, System, shares
from earshot_studies.pate_aae.table_1 import ACCURACIES, averaged, claims, difference, ratio

FRAMES, BANDS, CLASSES = 12, 10, 3
SMALL = StudySize(teachers=20, queries=40, samples=60, epsilons=(0.05, 100.0), delta=1e-4)


def spoken(count: int, seed: int, pitch: int) -> LabelledClips:
    """Word k is a tone in band 3k + pitch."""
    generator = np.random.default_rng(seed)
    labels = np.arange(count) % CLASSES
    pictures = np.full((count, FRAMES, BANDS), -1.0, dtype=np.float32)
    for picture, label in zip(pictures, labels, strict=True):
        picture[4:8, 3 * label + pitch] = 0.5
    return LabelledClips(
        pictures + generator.normal(0, 0.1, pictures.shape).astype(np.float32), labels
    )


@pytest.fixture(scope="module")
def split() -> Split:
    return Split(
        ("a", "b", "c"), "ann", spoken(60, 1, 0), spoken(12, 2, 0), spoken(180, 3, 1),
        spoken(60, 4, 1),
    )  # fmt: skip


@pytest.fixture
def study(split: Split, tmp_path: Path) -> Callable[..., tuple[ClipStudy, Makers]]:
    settings = EmbeddingSettings(dimensions=2, hidden=(16, 8), copies=1, shift=0, passes=5)
    embedding = fit(split.public.pictures, list("abc" * 20), settings)

    def make(size: StudySize = SMALL) -> tuple[ClipStudy, Makers]:
        makers = Makers([])
        own = ClipStudy(
            split,
            embedding,
            size,
            makers.all(),
            dict.fromkeys(System, "echoes"),
            tmp_path / "work",
            quiet,
        )
        return own, makers

    return make


def test_a_budget_is_split_where_a_generator_spends() -> None:
    whole = PublicationBudget(1.0, 1e-5)
    for system in System:
        generator, labels = shares(system, whole)
        spent = (0.0, 0.0) if generator is None else (generator.epsilon, generator.delta)
        assert spent[0] + labels.epsilon == pytest.approx(1.0)
        assert spent[1] + labels.delta == pytest.approx(1e-5)
        free = system in (System.PRINTED, *HEARS_NOBODY)
        assert (generator is None) == free
    with pytest.raises(InvalidParametersError, match="epsilon"):
        PublicationBudget(0.0, 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, 10.0])
def test_noise_keeps_the_budget_but_for_the_printed_one(epsilon: float) -> None:
    queries, delta = 200, 1e-5
    assert scale(AnswerNoise.PRINTED, epsilon, delta, queries) == pytest.approx(
        queries / 2 / epsilon
    )
    assert scale(AnswerNoise.NONE, epsilon, delta, queries) == 0
    deviation = scale(AnswerNoise.GAUSSIAN, epsilon, delta, queries)
    # One vote moves two counts: ρ = 1/σ² for each query. The exact law costs no more than that.
    rho = queries / deviation**2
    assert epsilon <= zcdp_epsilon(rho, delta) < 1.3 * epsilon
    assert scale(AnswerNoise.LAPLACE, epsilon, delta, queries) <= 2 * queries / epsilon * 1.001
    with pytest.raises(InvalidParametersError, match="queries=0"):
        scale(AnswerNoise.PRINTED, epsilon, delta, 0)
    with pytest.raises(InvalidParametersError, match="epsilon"):
        scale(AnswerNoise.GAUSSIAN, 0.0, delta, queries)


def test_a_clip_moves_the_vote_of_one_teacher_at_most(split: Split) -> None:
    """What the budget rests on: the others are trained without a look at it."""
    size = 15
    labels = (split.private.labels + (np.arange(180) == 50)) % 3
    other = LabelledClips(split.private.pictures.copy(), labels)
    parts = [
        ensemble(each, split.classes, size, np.random.default_rng(7))
        for each in (split.private, other)
    ]
    said = [own.answers(split.test.pictures) for own in parts]
    differs = (said[0] != said[1]).any(axis=1)
    assert differs.sum() <= 1
    assert np.abs(
        parts[0].votes(split.test.pictures) - parts[1].votes(split.test.pictures)
    ).sum(axis=1).max() <= 2  # fmt: skip


def test_answers_without_noise_break_ties_by_lot_and_with_it_are_noisy() -> None:
    votes = np.tile([5.0, 5.0, 0.0], (4000, 1))
    free = answered(AnswerNoise.NONE, votes, 0.0, np.random.default_rng(1))
    assert set(free.tolist()) == {0, 1}
    assert np.bincount(free).min() > 1800
    for noise in (AnswerNoise.PRINTED, AnswerNoise.LAPLACE, AnswerNoise.GAUSSIAN):
        drowned = answered(noise, votes, 1e4, np.random.default_rng(2))
        assert np.bincount(drowned, minlength=3).min() > 1200
        with pytest.raises(InvalidParametersError):
            answered(noise, votes, 0.0, np.random.default_rng(2))


@pytest.mark.slow
def test_cells_are_kept_and_a_killed_study_goes_on(
    study: Callable[..., tuple[ClipStudy, Makers]], split: Split, tmp_path: Path
) -> None:
    first, makers = study()
    seen = first.cells(System.DP_GAN, 1)
    assert [cell["epsilon"] for cell in seen] == [0.05, 100.0]
    assert [order.budget for _, order in makers.orders] == [
        PublicationBudget(0.025, 5e-5), PublicationBudget(50.0, 5e-5),
    ]  # fmt: skip
    # A run that was killed before the last cell makes that one alone.
    (last,) = tmp_path.glob("work/*/dp-gan-*-100-1.json")
    last.unlink()
    second, makers = study()
    assert second.cells(System.DP_GAN, 1) == seen
    assert len(makers.orders) == 1
    assert second.pictures(System.DP_GAN, 0.05, 1).shape == (6, FRAMES, BANDS)
    # Cells of other sizes, or of another recipe, are others.
    others, makers = study(replace(SMALL, queries=20))
    assert others.cells(System.DP_GAN, 1) != seen
    anew, makers = study()
    replace(anew, recipes={System.DP_GAN: "others"}).cells(System.DP_GAN, 1)
    assert len(makers.orders) == 2


@pytest.mark.slow
def test_a_generator_that_spends_nothing_is_trained_once(
    study: Callable[..., tuple[ClipStudy, Makers]],
) -> None:
    own, makers = study()
    cells = own.cells(System.PUBLIC, 2)
    assert [order.budget for _, order in makers.orders] == [None]
    assert cells[0]["fid"] == cells[1]["fid"]
    assert cells[0]["labels_epsilon"] == 0.05, "labels get the whole budget"
    noisy, free = (ACCURACIES[each] for each in (AnswerNoise.GAUSSIAN, AnswerNoise.NONE))
    assert cells[0][free] == cells[1][free], "the same clips and votes"
    assert cells[1][noisy] == cells[1][free], "noise of ε = 100 moves no answer of 20 teachers"


@pytest.mark.slow
def test_little_privacy_teaches_and_much_leaves_chance(
    study: Callable[..., tuple[ClipStudy, Makers]],
) -> None:
    own, _ = study()
    found = [cell for seed in range(1, 6) for cell in own.cells(System.PRINTED, seed)]
    column = ACCURACIES[AnswerNoise.GAUSSIAN]
    right = {
        epsilon: np.mean([float(cell[column]) for cell in found if cell["epsilon"] == epsilon])
        for epsilon in SMALL.epsilons
    }
    assert right[100.0] > 0.9
    assert right[0.05] < 0.6
    floor = own.references(1)
    assert floor["central"] > 0.95
    assert floor["vote"] >= floor["teacher"]
    assert floor["public"] < floor["central"], "the public speaker has another pitch"


test_bad_sizes_are_refused_before_any_training = refused(
    InvalidParametersError,
    ("teachers=181: there are 180 private clips", StudySize(teachers=181).check, 180),
    ("may be published", StudySize(teachers=20, delta=0.01).check, 180),
    ("queries=0", lambda: StudySize(queries=0)),
    ("all different", lambda: StudySize(epsilons=(1.0, 1.0))),
    ("epsilon", lambda: StudySize(epsilons=(-1.0,))),
)


@pytest.mark.slow
def test_the_reproduction_writes_a_table_a_picture_and_a_note(
    study: Callable[..., tuple[ClipStudy, Makers]], tmp_path: Path
) -> None:
    own, _ = study(replace(SMALL, queries=8))
    outcome = table_1.reproduce(own, 2)
    table, note, picture = write(outcome, tmp_path / "out")
    rows = rows_of(table)
    assert {(row["system"], float(row["epsilon"])) for row in rows} == {
        (str(system), epsilon) for system in System for epsilon in SMALL.epsilons
    }
    assert all(row["seeds"] == "2" for row in rows)
    text = note.read_text(encoding="utf-8")
    for heading in (
        "Table 1",
        "Figure 5",
        "Who is ahead",
        "Privacy and accuracy at a scale of K/2ε",
    ):
        assert heading in text
    assert "**it is not private**" in text
    assert "students that keep the budget are" in text
    assert "GAN, public" in text
    pair = "| *DP-GAN, from a public start* is ahead of *DP-GAN* |"
    assert text.count(pair) == 2 * len(SMALL.epsilons), "in distance and in accuracy"
    assert picture.stat().st_size > 10_000


@pytest.mark.slow
def test_two_processes_measure_what_one_does(
    study: Callable[..., tuple[ClipStudy, Makers]], tmp_path: Path
) -> None:
    own, _ = study()
    alone = table_1.reproduce(own, 1)
    both = table_1.reproduce(replace(own, folder=tmp_path / "both"), 1, processes=2)
    assert both.rows == alone.rows


def test_processes_that_the_machine_lacks_are_refused_before_any_training(
    study: Callable[..., tuple[ClipStudy, Makers]],
) -> None:
    own, makers = study()
    for processes in (0, 10_000):
        with pytest.raises(InvalidParametersError, match="processes"):
            table_1.reproduce(own, 1, processes)
    assert not makers.orders


def cell(system: System, seed: int, fid: float) -> Cell:
    columns = ("fid_real", "agreement", *ACCURACIES.values())
    kept = {
        f"{noise.name.lower()}_{each}": 1.0 for noise in AnswerNoise for each in ("kept", "scale")
    }
    return {
        "seed": seed, "system": str(system), "epsilon": 1.0, "fid": fid, "labels_epsilon": 1.0,
        **dict.fromkeys(columns, 0.5), **kept,
    }  # fmt: skip


def verdict(found: Estimate) -> str:
    return Claim("", "", None, found).verdict


def test_differences_are_in_pairs_of_a_seed() -> None:
    cells = [cell(System.PRINTED, seed, 10.0 * seed) for seed in (1, 2, 3)]
    cells += [cell(System.DP_GAN, seed, 10.0 * seed + 1.0 + 0.1 * seed) for seed in (3, 1, 2)]
    apart = difference(cells, "fid", System.DP_GAN, System.PRINTED, 1.0)
    assert apart.mean == pytest.approx(1.2)
    # Student's t of three values: 4.303 · 0.1 / √3.
    assert apart.wide == pytest.approx(4.302653 * 0.1 / np.sqrt(3), rel=1e-4)
    assert verdict(apart) == CONFIRMED
    assert verdict(Estimate(-apart.mean, apart.wide, 3)) == REFUTED
    assert verdict(Estimate(0.1, 0.2, 3)) == UNDECIDED
    assert verdict(Estimate(0.1, None, 1)) == "one seed"
    assert ratio(cells, System.PRINTED, System.DP_GAN, 1.0) == pytest.approx(20 / 21.2)
    (own, _) = averaged(cells)
    assert own["theirs_fid"] == table_1.FID[System.PRINTED][1]
    assert own["fid"] == pytest.approx(20.0)
    nearer, better = claims(cells, (1.0,), [(System.PRINTED, System.DP_GAN)])
    assert (nearer.ours, nearer.verdict) == (apart, CONFIRMED)
    assert nearer.theirs == pytest.approx(28.8 - 26.3)
    assert (better.ours.mean, better.theirs, better.verdict) == (0, None, UNDECIDED)
    lost, _ = claims(cells, (1.0,), [(System.DP_GAN, System.PRINTED)])
    assert (lost.ours.mean, lost.verdict) == (-apart.mean, REFUTED)


def written(folder: Path, speakers: dict[str, range], rate: int = 8000) -> Path:
    generator = np.random.default_rng(5)
    folder.mkdir(parents=True)
    for speaker, takes in speakers.items():
        for digit in range(2):
            for take in takes:
                tone = np.sin(2 * np.pi * 300 * (digit + 1) * np.arange(3000) / rate)
                sound = 0.3 * tone + generator.normal(0, 0.01, 3000)
                soundfile.write(folder / f"{digit}_{speaker}_{take}.wav", sound, rate)
    return folder


def test_digits_are_split_by_speaker_and_take(tmp_path: Path) -> None:
    folder = written(tmp_path / "fsdd", {"bob": range(7), "ann": range(3, 8)})
    found = open_split(folder)
    assert found.speaker == "ann"
    assert found.classes == ("0", "1")
    assert [len(part) for part in (found.public, found.validation, found.private, found.test)] == [
        6, 4, 4, 10,
    ]  # fmt: skip
    assert open_split(folder, "bob").speaker == "bob"
    # The louder band of a digit is its tone's, and what surrounds a short clip is silence.
    low, high = found.test.pictures[:5], found.test.pictures[5:]
    assert (low[:, 16].argmax(axis=1) < high[:, 16].argmax(axis=1)).all()
    np.testing.assert_array_equal(found.test.pictures[:, 0], -1.0)
    np.testing.assert_array_equal(found.test.labels, [0] * 5 + [1] * 5)


def test_speakers_that_do_not_do_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="one speaker, ann"):
        open_split(written(tmp_path / "one", {"ann": range(8)}))
    folder = written(tmp_path / "few", {"ann": range(8), "bob": range(5)})
    with pytest.raises(InvalidInputError, match="no clip of bob to train on"):
        open_split(folder)
    with pytest.raises(InvalidParametersError, match="speaker=eve: must be one of ann, bob"):
        open_split(folder, "eve")
    with pytest.raises(DatasetError, match="no folder"):
        open_split(tmp_path / "nowhere")


def test_public_sound_is_named_by_its_folder(tmp_path: Path) -> None:
    for place, name in enumerate(("bells", "doors")):
        written(tmp_path / "sounds" / name, {"x": range(place + 1)})
    found = open_sounds(tmp_path / "sounds")
    assert found.names == ("bells",) * 2 + ("doors",) * 4
    assert found.pictures.shape == (6, 32, 40)
