"""Teachers, ensembles in folders, and what students make of their answers."""

import json

import joblib
import keras
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from earshot_models.teachers import ensemble, teacher
from earshot_models.teachers.partitions import partitions
from earshot_models.teachers.students import NONE, pseudo_labelled, supervised
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.progress import silent
from earshot_studies.muehl.cnn import CnnSettings, NetworkWorkshop

CLASSES = ("low", "middle", "high")


def line(number, seed=0):
    """Points on a line, in three classes."""
    samples = np.random.default_rng(seed).uniform(-3, 3, (number, 2)).astype(np.float32)
    return samples, np.digitize(samples[:, 0], [-1, 1])


def layer(_=0):
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.1), loss, run_eagerly=True)  # tracing takes longer
    return model


class Epochs:
    """A Keras model with more steps than its default, as a learner of its own kind."""

    def __init__(self):
        self.model = layer()

    def fit(self, samples, labels):
        for _ in range(60):
            self.model.train_on_batch(samples, labels)

    def predict(self, samples):
        return self.model.predict_on_batch(samples)


@pytest.mark.parametrize("make", [lambda: KNeighborsClassifier(3), LogisticRegression, Epochs])
def test_any_learner_becomes_a_teacher(make):
    samples, labels = line(200)
    found = teacher.trained(make(), samples, labels, CLASSES)
    test, truth = line(100, 1)
    said = found.predict(test)
    assert said.dtype == np.int64
    assert np.mean(said == truth) > 0.9


def test_a_class_that_a_teacher_never_met_keeps_the_others_in_place():
    samples, labels = line(200)
    met = labels != 1
    found = teacher.trained(KNeighborsClassifier(3), samples[met], labels[met], CLASSES)
    assert set(found.predict(samples).tolist()) == {0, 2}


def test_what_teaches_nothing_is_refused():
    samples, labels = line(10)
    for wrong, classes in ((labels[:-1], CLASSES), (labels + 1, CLASSES), (labels / 2, CLASSES),
                           (labels, ("a",)), (labels, ("a", "a", "b"))):  # fmt: skip
        with pytest.raises(InvalidInputError, match=r"labels|classes"):
            teacher.trained(LogisticRegression(), samples, wrong, classes)


@pytest.mark.parametrize(
    "said", [np.zeros((4, 2)), np.full(4, 3), np.zeros(3, int), np.full((3, 3), np.nan), np.ones(4)]
)
def test_answers_that_are_none_are_refused(said):
    class Odd:
        def predict(self, samples):
            return said

    with pytest.raises(InvalidInputError, match=r"model"):
        teacher.Teacher(CLASSES, Odd()).predict(np.zeros((4, 2)))


@pytest.mark.slow
def test_a_teacher_that_went_astray_casts_no_vote_and_ends_nothing():
    class Astray:
        def predict(self, samples):
            return np.array([[0, 1, np.nan], [0, np.inf, 1], [0, 2, 1], [-np.inf, 1, 1]])

    said = teacher.Teacher(CLASSES, Astray()).predict(np.zeros((4, 2)))
    assert said.tolist() == [-1, -1, 1, -1]
    assert ensemble.vote_counts(said[None], 3).tolist() == [[0] * 3, [0] * 3, [0, 1, 0], [0] * 3]
    wild = NetworkWorkshop((8, 8, 1), CLASSES, CnnSettings(epochs=2, rate=1e30))
    images = np.random.default_rng(0).uniform(size=(8, 8, 8, 1))
    assert (wild.fit(images, np.arange(8) % 3).predict(images) == -1).all()


@pytest.fixture
def parts():
    return partitions(np.arange(90), 3, np.random.default_rng(0))


def test_an_ensemble_votes_as_its_teachers_do_and_goes_on_where_it_stopped(tmp_path, parts):
    samples, labels = line(90)
    made = []

    def make(number):
        made.append(number)
        return KNeighborsClassifier(3)

    ensemble.train(tmp_path, make, samples, labels, parts[:2], CLASSES, silent)
    ensemble.train(tmp_path, make, samples, labels, parts, CLASSES, silent)
    assert made == [0, 1, 2]
    asked, truth = line(50, 1)
    found = ensemble.votes(tmp_path, asked, CLASSES, silent)
    for part, votes in zip(parts, found, strict=True):
        expected = KNeighborsClassifier(3).fit(samples[part], labels[part]).predict(asked)
        np.testing.assert_array_equal(votes, expected)
    counts = ensemble.vote_counts(found, 3)
    assert (counts.sum(axis=1) == 3).all()
    assert np.mean(counts.argmax(axis=1) == truth) > 0.8


def test_a_killed_training_leaves_what_was_done(tmp_path, parts):
    samples, labels = line(90)

    def make(number):
        if number == 1:
            raise KeyboardInterrupt
        return KNeighborsClassifier(3)

    with pytest.raises(KeyboardInterrupt):
        ensemble.train(tmp_path, make, samples, labels, parts, CLASSES, silent)
    assert ensemble.votes(tmp_path, samples, CLASSES, silent).shape == (1, 90)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_keras_models_are_kept_too(tmp_path, parts):
    samples, labels = line(90)
    ensemble.train(tmp_path, layer, samples, labels, parts, CLASSES, silent)
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", *[".keras"] * 3]
    model = keras.saving.load_model(tmp_path / "teacher-0002.keras")
    expected = model.predict(samples, verbose=0).argmax(axis=1)
    found = ensemble.votes(tmp_path, samples, CLASSES, silent)
    np.testing.assert_array_equal(found[1], expected)


def test_folders_of_something_else_are_told_apart(tmp_path, parts):
    samples, labels = line(90)

    def train(rows=samples, own=parts, classes=CLASSES):
        make = lambda number: KNeighborsClassifier(3)  # noqa: E731
        ensemble.train(tmp_path, make, rows, labels, own, classes, silent)

    with pytest.raises(ensemble.EnsembleError, match="no readable"):
        ensemble.votes(tmp_path, samples, CLASSES, silent)
    train()
    with pytest.raises(ensemble.OtherClassesError, match="low, middle, high"):
        train(classes=("low", "high", "middle"))
    with pytest.raises(ensemble.OtherClassesError, match="another class list"):
        ensemble.votes(tmp_path, samples, ("a", "b"), silent)
    with pytest.raises(ensemble.OtherEnsembleError, match="teacher 1 learned"):
        train(rows=samples + 1)
    with pytest.raises(ensemble.OtherEnsembleError, match="more than 2"):
        train(own=parts[:2])
    with pytest.raises(InvalidParametersError, match="none may be empty"):
        train(own=[parts[0], parts[1][:0]])


def test_damaged_folders_are_refused(tmp_path, parts):
    samples, labels = line(90)
    make = lambda number: KNeighborsClassifier(3)  # noqa: E731
    ensemble.train(tmp_path, make, samples, labels, parts, CLASSES, silent)
    model = tmp_path / "teacher-0001.joblib"
    joblib.dump(KNeighborsClassifier(1).fit(samples, labels), model)
    with pytest.raises(ensemble.EnsembleError, match="not the model that was trained"):
        ensemble.votes(tmp_path, samples, CLASSES, silent)
    model.unlink()
    with pytest.raises(ensemble.EnsembleError, match="cannot be read"):
        ensemble.votes(tmp_path, samples, CLASSES, silent)
    for wrong in ("{", "[]", json.dumps({"classes": ["a"], "teachers": [{"file": "x"}]}),
                  json.dumps({"classes": list(CLASSES), "teachers": [
                      {"file": "../x", "digest": "", "learned": "", "samples": 1}]})):  # fmt: skip
        (tmp_path / ensemble.LIST).write_text(wrong)
        with pytest.raises(ensemble.EnsembleError, match="no readable"):
            ensemble.votes(tmp_path, samples, CLASSES, silent)


def test_a_file_that_is_no_model_is_named(tmp_path):
    for name in ("x.keras", "x.joblib"):
        (tmp_path / name).write_bytes(b"nothing")
        with pytest.raises(InvalidInputError, match=name):
            teacher.load(tmp_path / name, CLASSES)


def test_counts_are_those_of_a_loop_and_abstaining_counts_for_none():
    random = np.random.default_rng(0)
    votes = random.integers(-1, 3, (7, 20))
    for weights in (None, np.arange(7) / 2, random.random((7, 20))):
        found = ensemble.vote_counts(votes, 3, weights)
        for sample in range(20):
            for kind in range(3):
                own = [1.0] * 7 if weights is None else weights
                expected = sum(
                    np.ravel(own[t])[sample if np.ndim(own[t]) else 0]
                    for t in range(7)
                    if votes[t, sample] == kind
                )
                assert found[sample, kind] == pytest.approx(expected)
    for wrong in (votes + 1, votes - 1, votes[0], votes / 2):
        with pytest.raises(InvalidInputError, match="answers"):
            ensemble.vote_counts(wrong, 3)
    with pytest.raises(InvalidInputError, match="weights"):
        ensemble.vote_counts(votes, 3, np.ones(6))
    with pytest.raises(InvalidInputError, match="weights"):
        ensemble.vote_counts(votes, 3, np.full(7, np.nan))


def test_pseudo_labels_are_those_of_the_textbook():
    samples, truth = line(200)
    answers = np.full(200, NONE)
    answers[:12] = truth[:12]
    assert set(truth[:12].tolist()) == {0, 1, 2}
    found = pseudo_labelled(GaussianNB(), samples, answers, CLASSES, 0.95)

    known = answers.copy()
    for _ in range(10):
        model = GaussianNB().fit(samples[known != NONE], known[known != NONE])
        chances = model.predict_proba(samples)
        believed = (known == NONE) & (chances.max(axis=1) > 0.95)
        if not believed.any():
            break
        known[believed] = chances.argmax(axis=1)[believed]
    model = GaussianNB().fit(samples[known != NONE], known[known != NONE])
    assert (known != NONE).sum() > 50
    np.testing.assert_array_equal(found.predict(samples), model.predict(samples))
    # Where everything is answered, nothing is left to believe.
    whole = pseudo_labelled(GaussianNB(), samples, truth, CLASSES)
    alone = supervised(GaussianNB(), samples, truth, CLASSES)
    np.testing.assert_array_equal(whole.predict(samples), alone.predict(samples))


def test_a_student_of_nothing_is_refused():
    samples, labels = line(10)
    for make in (supervised, pseudo_labelled):
        with pytest.raises(InvalidInputError, match="nothing was answered"):
            make(LogisticRegression(), samples, np.full(10, NONE), CLASSES)
        with pytest.raises(InvalidInputError, match="answers"):
            make(LogisticRegression(), samples, labels[:-1], CLASSES)
        with pytest.raises(InvalidInputError, match=r"answers|labels"):
            make(LogisticRegression(), samples, np.where(labels == 0, NONE, 3), CLASSES)
    with pytest.raises(InvalidInputError, match="-1"):
        supervised(LogisticRegression(), samples, labels - 2, CLASSES)
    with pytest.raises(InvalidInputError, match="probabilities"):
        pseudo_labelled(LinearSVC(), samples, labels, CLASSES)
    with pytest.raises(InvalidParametersError, match="confidence"):
        pseudo_labelled(LogisticRegression(), samples, labels, CLASSES, 1.5)
