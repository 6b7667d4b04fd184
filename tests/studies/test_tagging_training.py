"""Taggers learn what sounds, from the same seed the same, and refuse what they cannot use."""

from dataclasses import replace

import numpy as np
import pytest

from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_studies.muschiol.tagging.examples import Examples
from earshot_studies.muschiol.tagging.mel_power import FLOOR
from earshot_studies.muschiol.tagging.metrics import average_precisions
from earshot_studies.muschiol.tagging.training import Training, Workshop

LABELS = ("low", "middle", "high")
SHAPE = (20, 16)
SHORT = Training(steps=90, batch=16, every=30)


def tones(clips, seed):
    """Noise with a band or several that sound for half the time; every third has none."""
    random = np.random.default_rng(seed)
    targets = (random.random((clips, 3)) < 0.4).astype(int)
    power = random.exponential(1.0, (clips, *SHAPE))
    for label, band in enumerate((2, 7, 12)):
        for clip in np.flatnonzero(targets[:, label]):
            start = random.integers(0, 10)
            power[clip, start : start + 10, band : band + 2] += 12
    return Examples.of(power, targets)


@pytest.fixture(scope="module")
def workshop():
    return Workshop(SHAPE, LABELS, SHORT)


def right(tagger, examples):
    return np.mean((tagger.probabilities(examples.power) > 0.5) == examples.targets)


@pytest.mark.slow
def test_it_learns_and_starts_anew_each_time(workshop):
    examples, validation, test = tones(80, 0), tones(60, 1), tones(100, 2)
    tagger = workshop.fit(examples, validation, seed=1)
    assert right(tagger, test) > 0.9
    turned = Examples(examples.power, 1 - examples.targets)
    other = workshop.fit(turned, Examples(validation.power, 1 - validation.targets), seed=1)
    assert right(other, Examples(test.power, 1 - test.targets)) > 0.85
    # The first was not touched by the second, and comes out the same from the same seed.
    assert right(tagger, test) > 0.9
    again = workshop.fit(examples, validation, seed=1)
    for here, there in zip(tagger.weights, again.weights, strict=True):
        np.testing.assert_allclose(here, there, atol=1e-3)
    unlike = workshop.fit(examples, validation, seed=2)
    assert not np.allclose(unlike.weights[0], tagger.weights[0], atol=1e-3) or not np.allclose(
        unlike.weights[2], tagger.weights[2], atol=1e-3
    )


@pytest.mark.slow
def test_it_keeps_the_best_of_what_validation_heard_and_ends_early():
    patient = Workshop(SHAPE, LABELS, replace(SHORT, steps=2000, every=10, patience=2))
    tagger = patient.fit(tones(40, 0), tones(60, 1))
    steps, scores = zip(*tagger.history, strict=True)
    assert steps == tuple(range(10, 10 * len(steps) + 1, 10))
    assert len(steps) < 200
    assert len(scores) - 1 - int(np.argmax(scores)) == 2
    validation = tones(60, 1)
    found = average_precisions(
        validation.targets.astype(int), tagger.probabilities(validation.power)
    )
    assert found.mean() == pytest.approx(max(scores), abs=1e-6)


@pytest.mark.slow
def test_a_teacher_that_went_astray_keeps_what_was_best_before(monkeypatch):
    shop = Workshop(SHAPE, LABELS, replace(SHORT, steps=30, every=10))
    real, steps = shop._train, []

    def astray(*given):
        loss = real(*given)
        steps.append(loss)
        if len(steps) % 3 == 2:
            shop.restore([np.full_like(each, np.nan) for each in shop._weights()])
        return loss

    monkeypatch.setattr(shop, "_train", astray)
    tagger = shop.fit(tones(40, 0), tones(60, 1))
    assert [step for step, _ in tagger.history] == [10]
    assert np.isfinite(tagger.probabilities(tones(20, 2).power)).all()
    steps.clear()
    with pytest.raises(InvalidInputError, match="at a lower rate"):
        shop.fit(tones(40, 0))


@pytest.mark.slow
def test_without_validation_it_trains_to_the_end():
    tagger = Workshop(SHAPE, LABELS, SHORT).fit(tones(80, 0), seed=3)
    assert tagger.history == ()
    assert right(tagger, tones(100, 2)) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize(
    "other",
    [
        {"weighted": True, "balanced": False},
        {"mixup": None, "adaptive": True},
    ],
    ids=["weighted, unbalanced", "unmixed, adaptive"],
)
def test_every_part_of_the_recipe_can_be_set(other):
    shop = Workshop(SHAPE, LABELS, replace(SHORT, **other))
    tagger = shop.fit(tones(80, 0), tones(60, 1), seed=5)
    assert right(tagger, tones(100, 2)) > 0.9


def test_what_is_mixed_is_power(workshop):
    power = tones(6, 4).power
    first, second, share = np.array([0, 3, 5]), np.array([1, 3, 2]), np.float32([0.2, 0.5, 0.9])
    part = share[:, None, None].astype(float)
    expected = np.log(part * power[first] + (1 - part) * power[second] + FLOOR)
    np.testing.assert_allclose(workshop._mixed(power, first, second, share), expected, atol=1e-4)


def test_probabilities_are_of_clips_one_by_one(workshop):
    tagger = workshop.fit(tones(30, 0), seed=4)
    power = tones(700, 3).power
    together = tagger.probabilities(power)
    assert together.shape == (700, 3)
    assert ((together >= 0) & (together <= 1)).all()
    np.testing.assert_allclose(together[[5, 699]], tagger.probabilities(power[[5, 699]]), atol=1e-5)
    assert tagger.probabilities(power[:0]).shape == (0, 3)


def test_what_it_cannot_learn_from_is_refused(workshop):
    good = tones(8, 0)
    with pytest.raises(InvalidInputError, match=r"must be \(clips, 20, 16\)"):
        workshop.fit(Examples(good.power[:, :9], good.targets))
    with pytest.raises(InvalidInputError, match="targets of shape"):
        workshop.fit(Examples(good.power, good.targets[:-1]))
    with pytest.raises(InvalidInputError, match="no clips"):
        workshop.fit(good.rows(slice(0, 0)))
    with pytest.raises(InvalidInputError, match="NaN or infinite in clips 0"):
        workshop.fit(Examples(np.full_like(good.power, np.inf), good.targets))
    with pytest.raises(InvalidInputError, match="negative"):
        workshop.fit(Examples(-good.power, good.targets))
    with pytest.raises(InvalidInputError, match="from 0 to 1"):
        workshop.fit(Examples(good.power, 2 + good.targets))
    with pytest.raises(InvalidInputError, match="another network"):
        workshop.restore(Workshop(SHAPE, ("a", "b"), SHORT).model.get_weights())


@pytest.mark.parametrize(
    "wrong",
    [{"steps": 0}, {"batch": 1}, {"rate": 0}, {"every": 0}, {"patience": 0}],
    ids=lambda wrong: next(iter(wrong)),
)
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(InvalidParametersError):
        Training(**wrong)
