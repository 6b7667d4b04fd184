"""A published tagger: what is written is what is read, and anything else is refused by name."""

import json
import zipfile
from dataclasses import replace
from types import SimpleNamespace

import keras
import msgspec
import numpy as np
import pytest

from earshot_models.tagging import tagger_file
from earshot_models.tagging.evidence import LabelEvidence, best_thresholds, gathered
from earshot_models.tagging.examples import Examples
from earshot_models.tagging.mel_power import MelSettings, log_mel
from earshot_models.tagging.tagger_file import (
    DamagedTaggerError,
    OtherTaggerError,
    TaggerCard,
    TaggerCost,
)
from earshot_models.tagging.training import FAST, Training, Workshop
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.privacy.mechanisms import Unit

# What Keras does with TensorFlow's variables when it saves them; nothing of ours.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

MEL = MelSettings(4000, 256, 200, 12, 0.5)
LABELS = ("hum", "squeak")


def card(**other):
    given = {
        "network": "small",
        "labels": LABELS,
        "mel": MEL,
        "level": 0.1,
        "thresholds": (0.5, 0.25),
        "stated_by": "the tests",
        "trained": "On 40 answers of 200 teachers.",
        "cost": TaggerCost(
            epsilon=8.0, delta=1e-8, unit=Unit.REPLACED_PHONE, mechanism="GNThreshold"
        ),
        "evidence": (
            LabelEvidence(clips=50, present=10, named=12, right=9),
            LabelEvidence(clips=50, present=5, named=0, right=0),
        ),
    }
    return TaggerCard(**{**given, **other})


@pytest.fixture(scope="module")
def tagger():
    random = np.random.default_rng(0)
    power = random.exponential(1, (40, *MEL.shape))
    examples = Examples.of(power, random.integers(0, 2, (40, 2)))
    return Workshop(MEL.shape, LABELS, replace(FAST, steps=4, batch=8)).fit(examples)


@pytest.fixture(scope="module")
def published(tagger, tmp_path_factory):
    path = tmp_path_factory.mktemp("published") / "student.keras"
    tagger_file.save(tagger, card(), path)
    return path


POWER = np.random.default_rng(1).exponential(1, (5, *MEL.shape)).astype(np.float32)


def test_what_is_written_is_what_is_read(tagger, published):
    again = tagger_file.load(published, LABELS, MEL)
    assert again.card == card()
    np.testing.assert_allclose(
        again.tagger.probabilities(POWER), tagger.probabilities(POWER), atol=1e-6
    )
    np.testing.assert_array_equal(
        again.named(np.array([[0.6, 0.3], [0.5, 0.2]])), [[True, True], [False, False]]
    )
    assert [path.name for path in published.parent.iterdir()] == ["student.keras"]


def test_keras_opens_it_without_earshot(tagger, published):
    model = keras.saving.load_model(published)
    logits = np.asarray(model(log_mel(POWER)))
    np.testing.assert_allclose(1 / (1 + np.exp(-logits)), tagger.probabilities(POWER), atol=1e-5)


def test_a_card_without_cost_or_evidence_is_read_as_such(tagger, tmp_path):
    tagger_file.save(tagger, card(cost=None, evidence=()), tmp_path / "own.keras")
    found = tagger_file.read_card(tmp_path / "own.keras")
    assert (found.cost, found.evidence) == (None, ())


def test_another_tagger_than_asked_for_is_refused(published):
    with pytest.raises(OtherTaggerError, match="names hum, squeak; wanted: hum"):
        tagger_file.load(published, ("hum",))
    with pytest.raises(OtherTaggerError, match="hears"):
        tagger_file.load(published, mel=replace(MEL, bands=13))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"labels": ("hum", "hum")}, "different names"),
        ({"labels": ("hum", "creak")}, "the card is of"),
        ({"mel": replace(MEL, bands=13)}, "the card is of"),
        ({"network": "huge"}, "network"),
        ({"thresholds": (0.5,)}, "1 thresholds"),
        ({"thresholds": (0.5, np.nan)}, "threshold of squeak"),
        ({"stated_by": " "}, "who states"),
        ({"level": 0}, "level"),
        ({"evidence": (LabelEvidence(clips=5, present=1, named=1, right=1),)}, "evidence of 1"),
        ({"evidence": (LabelEvidence(clips=5, present=1, named=2, right=2),) * 2}, "such clips"),
        ({"cost": TaggerCost(epsilon=-1, delta=0.1, unit=Unit.PHONE, mechanism="")}, "epsilon"),
        ({"cost": TaggerCost(epsilon=1, delta=0, unit=Unit.PHONE, mechanism="")}, "delta"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_card_that_does_not_fit_is_refused(tagger, tmp_path, other, message):
    with pytest.raises((InvalidInputError, InvalidParametersError), match=message):
        tagger_file.save(tagger, card(**other), tmp_path / "student.keras")
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_written_is_refused(tagger, tmp_path):
    with pytest.raises(InvalidInputError, match=r"must end in \.keras"):
        tagger_file.save(tagger, card(), tmp_path / "student.zip")
    with pytest.raises(InvalidInputError, match="cannot be written"):
        tagger_file.save(tagger, card(), tmp_path / "nowhere" / "student.keras")
    broken = replace(tagger, weights=tuple(np.full_like(each, np.nan) for each in tagger.weights))
    with pytest.raises(InvalidInputError, match="finite"):
        tagger_file.save(broken, card(), tmp_path / "student.keras")


def rewritten(published, path, change):
    """The same archive with entries changed, added or (None) left out."""
    with zipfile.ZipFile(published) as old, zipfile.ZipFile(path, "w") as new:
        entries = {name: old.read(name) for name in old.namelist()}
        entries.update(change(entries))
        for name, content in entries.items():
            if content is not None:
                new.writestr(name, content)
    return path


def carded(entries, **fields):
    return {"earshot.json": json.dumps({**json.loads(entries["earshot.json"]), **fields})}


def taller(entries):
    """A card of a network with a label more than the weights have."""
    found = json.loads(entries["earshot.json"])
    more = {name: [*found[name], found[name][0]] for name in ("thresholds", "evidence")}
    return carded(entries, labels=["a", "b", "c"], **more)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda entries: {"earshot.json": None}, "has no earshot.json"),
        (lambda entries: {"earshot.json": b"{"}, "not a published tagger"),
        (lambda entries: {"earshot.json": b" " * (2**20 + 1)}, "larger"),
        (lambda entries: carded(entries, format=2), "not a published tagger"),
        (lambda entries: carded(entries, more=1), "not a published tagger"),
        (lambda entries: carded(entries, thresholds=[0.5, 2]), "not a published tagger"),
        (lambda entries: carded(entries, mel={"rate": 4000}), "not a published tagger"),
        (lambda entries: {"model.weights.h5": None}, "no weights"),
        (lambda entries: {"model.weights.h5": b"nothing"}, "no weights"),
        (taller, "no weights"),
    ],
    ids=[
        "no card", "no JSON", "too large", "format", "unknown field", "threshold", "spectrum",
        "no weights", "other bytes", "other labels",
    ],
)  # fmt: skip
def test_a_damaged_file_is_refused(published, tmp_path, change, message):
    path = rewritten(published, tmp_path / "student.keras", change)
    with pytest.raises(DamagedTaggerError, match=message):
        tagger_file.load(path)


def test_a_file_cut_short_or_of_something_else_is_refused(published, tmp_path):
    path = tmp_path / "student.keras"
    with pytest.raises(DamagedTaggerError, match="not a published tagger"):
        tagger_file.load(path)
    path.write_bytes(published.read_bytes()[:-200])
    with pytest.raises(DamagedTaggerError, match="not a published tagger"):
        tagger_file.load(path)


def test_nothing_in_the_file_is_run(published, tmp_path):
    """Whatever its configuration says: the network is ours, and only numbers come from the file."""

    def change(entries):
        lambda_ = {"module": "keras.layers", "class_name": "Lambda", "config": {"function": "x"}}
        return {"config.json": json.dumps(lambda_)}

    path = rewritten(published, tmp_path / "student.keras", change)
    whole = tagger_file.load(published).tagger.probabilities(POWER)
    np.testing.assert_array_equal(tagger_file.load(path).tagger.probabilities(POWER), whole)


def test_evidence_counts_names_above_thresholds():
    random = np.random.default_rng(2)
    truth, likely = random.integers(0, 2, (30, 3)), random.random((30, 3))
    limits = np.array([0.3, 0.5, 2.0])
    for at, found in enumerate(gathered(truth, likely, limits)):
        said = [value > limits[at] for value in likely[:, at]]
        right = sum(1 for here, name in zip(truth[:, at], said, strict=True) if here and name)
        assert found == LabelEvidence(
            clips=30, present=int(truth[:, at].sum()), named=sum(said), right=right
        )
        found.check()
    with pytest.raises(InvalidInputError, match="thresholds"):
        gathered(truth, likely, limits[:2])
    with pytest.raises(InvalidInputError, match="finite"):
        gathered(truth, likely[:5], limits)
    with pytest.raises(InvalidInputError, match="0 or 1"):
        gathered(truth + 1, likely, limits)


def test_false_alarms_follow_laplace_and_names_a_binomial():
    found = LabelEvidence(clips=50, present=10, named=12, right=9)
    assert found.false_alarms == 4 / 42
    chance = sum(
        (4 / 42) ** k * (38 / 42) ** (7 - k) * ways for k, ways in ((2, 21), (3, 35), (4, 35))
    )
    chance += sum((4 / 42) ** k * (38 / 42) ** (7 - k) * ways for k, ways in ((5, 21), (6, 7)))
    chance += (4 / 42) ** 7
    assert found.chance(2, 7) == pytest.approx(chance)
    assert found.chance(0, 0) == 1.0
    with pytest.raises(InvalidParametersError):
        found.chance(3, 2)


def test_the_best_threshold_is_where_f1_is():
    truth = np.array([[1, 0], [1, 0], [0, 0], [0, 0]])
    likely = np.array([[0.9, 0.1], [0.55, 0.9], [0.5, 0.2], [0.1, 0.3]])
    best = best_thresholds(truth, likely)
    assert 0.5 <= best[0] < 0.55
    assert best[1] == pytest.approx(0.98)  # in no clip: hardly ever to be named


def test_a_card_is_plain_json_that_anybody_reads():
    found = json.loads(msgspec.json.encode(card()))
    assert found["cost"]["unit"] == "replaced phone"
    assert found["mel"] == {"rate": 4000, "window": 256, "hop": 200, "bands": 12, "seconds": 0.5}


def test_a_tagger_of_another_network_does_not_fit_the_card(tagger):
    other = SimpleNamespace(**{name: getattr(tagger, name) for name in ("labels", "weights")})
    other.workshop = SimpleNamespace(shape=MEL.shape, settings=Training("resnet18"))
    with pytest.raises(InvalidInputError, match="resnet18"):
        tagger_file.save(other, card(), None)
