"""Corrupted phones do what they are said to do, and the run says what came of it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.geometry import Geometry, unit_rows
from earshot_protocol.phases.discovery import Discovered
from earshot_protocol.privacy.mechanisms import GRID, VectorSum
from earshot_protocol.voting.sums import two_operator_parameters
from earshot_protocol.voting.totals import check_total
from earshot_protocol.wire import Matrix
from earshot_simulations.adversary.adversary import Adversary
from earshot_simulations.adversary.attack import far_place, opposite_place
from earshot_simulations.adversary.built_in import built_in
from earshot_simulations.adversary.success import measure
from earshot_simulations.engine.dropouts import draw_dropouts
from earshot_simulations.phases.run import Run, render, result
from earshot_simulations.phases.settings import Discovery, Settings, SummationChoice
from earshot_simulations.phases.simulation import simulate
from earshot_simulations.populations import Blobs, LiftedBlobs, Recordings, Soundscapes

PEACE = Settings(
    discovery=Discovery.LOCAL,
    phones=100,
    recordings=50,
    scenes=4,
    labelled=0.5,
    dropout=0.1,
    jobs=1,
    summation=SummationChoice.IDEAL,
)


NOWHERE = np.zeros(2, np.float32)


def under(summation: SummationChoice = SummationChoice.IDEAL, **fractions: float) -> Run:
    adversary = Adversary(**fractions)
    return simulate(dataclasses.replace(PEACE, adversary=adversary, summation=summation))


@pytest.fixture(scope="module")
def peace() -> Run:
    return simulate(PEACE)


def test_without_an_adversary_there_is_nothing_to_say(peace: Run) -> None:
    assert peace.adversary is None
    assert result(peace)["adversary"] is None
    assert "The adversary" not in render(peace)


def test_equal_fractions_are_the_same_phones_and_smaller_ones_are_among_them() -> None:
    members = Adversary(poisoning=0.2, ballot_stuffing=0.2, garbage=0.05).members(200, seed=3)
    assert members["poisoning"] == members["ballot_stuffing"]
    assert members["garbage"] < members["poisoning"]
    assert [len(members[name]) for name in ("poisoning", "garbage", "dropouts")] == [40, 10, 0]
    assert built_in(members, NOWHERE).corrupted == members["poisoning"]


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_fraction_that_is_none_is_refused(value: float) -> None:
    with pytest.raises(InvalidParametersError, match="wrong_shares"):
        Adversary(wrong_shares=value)


def test_the_target_is_far_from_all_that_is_heard() -> None:
    blobs = Blobs(5, 5, 6, 0.5, seed=1)
    place = far_place(blobs, 1)
    assert np.linalg.norm(blobs.centres - place, axis=1).min() > 0.35
    assert np.abs(place).max() <= 1
    assert place.tolist() == far_place(blobs, 1).tolist()
    with Soundscapes(3, 2, 2, 0.5, 3, dimensions=8) as population:
        direction = far_place(population, 1)
        assert np.linalg.norm(direction) == pytest.approx(1, abs=1e-6)
        assert (population.held_out().points @ direction).max() < 0.5
        assert population.geometry is Geometry.SPHERICAL


def listened(scenes: list[int], labels: list[int]) -> Recordings:
    points = np.random.default_rng(0).random((len(scenes), 2)).astype(np.float32)
    return Recordings(points, np.array(labels, np.int16), np.array(scenes, np.int16))


def test_two_labels_are_swapped_and_nothing_else_is_labelled() -> None:
    attack = built_in({"swapped_labels": frozenset({4})}, NOWHERE, labels=3)
    own = listened([0, 1, 2, 1, 0], [-1, 1, 2, -1, 0])
    held = attack.heard(4, own)
    assert held.labels.tolist() == [1, 0, -1, 0, 1]
    assert held.labels.dtype == np.int16
    assert (held.points is own.points, held.scenes is own.scenes) == (True, True)
    assert attack.heard(3, own).labels.tolist() == own.labels.tolist()
    # Of a single label there is no other.
    alone = built_in({"swapped_labels": frozenset({4})}, NOWHERE, labels=1)
    assert alone.heard(4, own).labels.tolist() == own.labels.tolist()


def test_everything_gets_the_last_label() -> None:
    attack = built_in({"one_label": frozenset({4})}, NOWHERE, labels=3)
    own = listened([0, 1, 2], [-1, 1, 0])
    held = attack.heard(4, own)
    assert held.labels.tolist() == [2, 2, 2]
    assert held.labels.dtype == np.int16
    assert attack.heard(5, own).labels.tolist() == [-1, 1, 0]
    blobs = Blobs(100, 50, 4, 0.5, 0)
    adversary = Adversary(one_label=0.1)
    made = dataclasses.replace(PEACE, adversary=adversary).attack(blobs)
    (phone, *_) = made.corrupted
    assert set(made.heard(phone, blobs.recordings(phone)).labels.tolist()) == {3}


def test_the_first_label_is_pushed_away_by_the_opposite_of_its_sound() -> None:
    blobs = LiftedBlobs(50, 10, 4, 0.5, 0)
    settings = Settings(phones=50, scenes=4, adversary=Adversary(pushed_label=0.1), jobs=1)
    made = settings.attack(blobs)
    (phone, *_) = made.corrupted
    held = made.heard(phone, blobs.recordings(phone))
    assert set(held.labels.tolist()) == {0}
    first = blobs.held_out().points[blobs.held_out().scenes == 0]
    assert (first @ held.points[0]).max() < -0.98
    with pytest.raises(InvalidParametersError, match="no held-out recording is of 'scene 1'"):
        opposite_place(Unheard(50, 10, 4, 0.5, 0), 0)


class Unheard(LiftedBlobs):
    """Blobs of which nobody ever hears the first."""

    def held_out(self) -> Recordings:
        found = super().held_out()
        return found.rows(found.scenes > 0)


def test_counts_are_as_negative_as_a_vector_of_legal_length_allows() -> None:
    attack = built_in({"negative_counts": frozenset({4})}, np.ones(3, np.float32)).made[0].attack
    honest = np.full((5, 4), 9)
    vector = attack.added(4, honest, None)
    assert not vector[:, :-1].any()
    steps = GRID / np.sqrt(5)
    assert vector[:, -1] == pytest.approx(-steps, abs=2)
    assert np.square(vector).sum() <= GRID**2
    cells = np.full((7, 3), 9)
    assert attack.added(4, cells, None) is cells


@pytest.mark.parametrize("liars", [1, 4])
def test_false_vectors_are_a_total_that_honest_phones_could_have(liars: int) -> None:
    place = unit_rows(np.arange(1.0, 65.0)[None])[0].astype(np.float32)
    made = built_in({"false_vectors": frozenset(range(liars))}, place).made[0].attack
    mechanism = VectorSum(1.0, 15 * 65, 1e-6, None)
    parameters = two_operator_parameters(mechanism, (15, 65), 100, 50, 60.0)
    total = liars * made.added(0, np.zeros((15, 65), np.int64), parameters)
    assert np.linalg.norm(total[0]) == pytest.approx(50 * GRID, rel=1e-3)
    assert (total[1::2] == -total[:-1:2]).all()
    check_total(total, mechanism, 100)


@pytest.mark.parametrize(
    ("attacks", "wants"),
    [
        (("swapped_labels",), {0: 1, 1: 0}),
        (("one_label",), {0: 3, 1: 3, 2: 3}),
        (("swapped_labels", "one_label"), {0: 1, 1: 0, 2: 3}),
        (("poisoning",), {}),
    ],
)
@pytest.mark.parametrize("radius", [None, 0.1])
def test_misnamed_is_what_a_loop_counts(
    attacks: tuple[str, ...], wants: dict[int, int], radius: float | None
) -> None:
    """Prototypes in five directions; the last may be noise, so that it names nothing."""
    generator = np.random.default_rng(5)
    middles = np.eye(5, 4, dtype=np.float32) + np.float32(0.1)
    middles[4] = 0.5, 0.5, -0.5, -0.5
    result = Discovered(
        phase=bytes(16),
        geometry=Geometry.SPHERICAL,
        centroids=Matrix.of(middles),
        labels=(0, 1, 2, 3, 1),
        choices=("",) * 5,
        label_names=("a", "b", "c", "d"),
        name_p_values=(0.001, 0.001, 0.002, 0.05, 1.0),
        lengths=(5.0, 4.0, 3.0, 2.0, 0.5),
        cells=Matrix.of(middles),
        moved=(True,) * 5,
        cell_lengths=(1.0,) * 5,
        cell_prototypes=(0, 1, 2, 3, 4),
        radius=radius,
        refused=0.0,
        encoder="any",
        privacy=(),
    )
    points = generator.normal(0.3, 0.5, (400, 4)).astype(np.float32)
    held_out = Recordings(points, np.full(400, -1, np.int16), generator.integers(0, 4, 400))
    expected = 0
    for point, scene in zip(points, held_out.scenes, strict=True):
        cosines = [
            float(point @ row / np.linalg.norm(point) / np.linalg.norm(row)) for row in middles
        ]
        best = int(np.argmax(cosines))
        name = result.labels[best] if result.name_p_values[best] <= 0.05 else None
        if radius is not None and 1 - cosines[best] > radius:
            name = None
        expected += name is not None and wants.get(int(scene)) == name
    attack = built_in({each: frozenset({0}) for each in attacks}, np.ones(4, np.float32), labels=4)
    success = measure(attack, 1.0, 0, result, held_out)
    assert success.misnamed == pytest.approx(expected / 400)
    assert (success.misnamed > 0) == bool(wants)


@pytest.mark.slow
def test_poisoned_and_stuffed_a_place_that_nobody_heard_is_published(peace: Run) -> None:
    run = under(poisoning=0.05, ballot_stuffing=0.05)
    assert run.adversary is not None
    assert (run.adversary.phones, run.adversary.controlled) == (
        {"poisoning": 5, "ballot_stuffing": 5},
        5,
    )
    assert run.adversary.published
    assert run.found.centroid_votes is not None
    assert run.found.global_centroids is not None
    assert peace.found.centroid_votes is not None
    # Five ballots weigh more than those of all others for any place.
    assert run.adversary.votes == run.found.centroid_votes.max() > peace.found.centroid_votes.max()
    scenes = Blobs(100, 50, 4, 0.5, 0).centres
    best = run.found.global_centroids[run.found.centroid_votes.argmax()]
    assert np.linalg.norm(scenes - best, axis=1).min() > 0.35
    page = render(run)
    assert "place was published" in page
    figures = result(run)["adversary"]
    assert isinstance(figures, dict)
    assert figures["phones"] == {"poisoning": 5, "ballot_stuffing": 5}


def test_poison_alone_gets_few_votes() -> None:
    alone = under(poisoning=0.1)
    assert alone.adversary is not None
    assert (alone.adversary.votes or 0) < 60
    assert any("allow for at most 5" in note for note in alone.notes)


def test_garbage_is_refused_and_counted() -> None:
    run = under(garbage=0.03)
    assert run.adversary is not None
    # It is refused where it would be a first answer; after that nobody asks those phones.
    assert run.adversary.refused >= 3
    assert any("not a message" in note for note in run.notes)


@pytest.mark.slow
def test_dropouts_leave_together_in_the_last_round() -> None:
    parameters = PEACE.parameters(Blobs(100, 50, 4, 0.5, 0))
    drawn = draw_dropouts(parameters, PEACE.seed)
    members = Adversary(dropouts=0.06).members(100, PEACE.seed)
    leaving = built_in(members, NOWHERE).dropouts(drawn, parameters.plan(), parameters.phones)
    assert sum(map(len, drawn.values())) == sum(map(len, leaving.values())) == 10
    assert members["dropouts"] <= set(leaving["label vote: unmask"])
    assert len({phone for gone in leaving.values() for phone in gone}) == 10
    within, beyond = under(dropouts=0.06), under(dropouts=0.15)
    assert within.interrupted is None
    assert beyond.interrupted is not None
    assert "at least 90 are needed" in beyond.interrupted
    assert beyond.adversary is not None
    assert beyond.adversary.published is None
    assert "ended without a result" in render(beyond)


@pytest.mark.slow
def test_wrong_shares_of_one_are_corrected_and_of_many_end_the_phase(peace: Run) -> None:
    # One is corrected in this seed's graphs, as in 996 of 1000 drawn ones: where nine of a phone's
    # neighbours vanish, nothing is left to correct with.
    few, many = (under(SummationChoice.REAL, wrong_shares=fraction) for fraction in (0.01, 0.4))
    assert few.interrupted is None
    assert few.found.centroid_votes is not None
    assert peace.found.centroid_votes is not None
    assert few.found.centroid_votes.tolist() == peace.found.centroid_votes.tolist()
    assert many.interrupted is not None
    assert "shares are wrong" in many.interrupted
