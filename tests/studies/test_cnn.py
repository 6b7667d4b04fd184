"""The network of digits: what it is made of, and that one graph trains many."""

import keras
import numpy as np
import pytest

from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_studies.muehl.cnn import CnnSettings, NetworkWorkshop

CLASSES = ("left", "right", "both")


def bars(number, seed):
    """Bright bars at the left, at the right, or at both sides, in noise."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 3, number)
    images = random.uniform(0, 0.3, (number, 10, 10, 1)).astype(np.float32)
    images[labels != 1, :, 1:4] += 0.6
    images[labels != 0, :, 6:9] += 0.6
    return images, labels


@pytest.fixture(scope="module")
def workshop():
    return NetworkWorkshop((10, 10, 1), CLASSES, CnnSettings(epochs=12, least=8))


def test_the_layers_are_those_of_table_6_1():
    model = NetworkWorkshop((28, 28, 1), list("0123456789")).model
    kinds = [type(layer).__name__ for layer in model.layers]
    assert kinds == ["Conv2D", "BatchNormalization", "MaxPooling2D", "Flatten", "Dense",
                     "BatchNormalization", "Dense"]  # fmt: skip
    # 32 kernels of 3 × 3 and biases, two normalizations of 4 numbers a channel, 13 · 13 · 32 inputs
    # of 100 units, 100 of 10.
    assert model.count_params() == 320 + 4 * 32 + (5408 * 100 + 100) + 4 * 100 + 1010


def test_batches_are_a_tenth_of_the_examples_from_16_to_64():
    settings = CnnSettings()
    assert [settings.batch(n) for n in (9, 50, 240, 500, 2000)] == [9, 16, 24, 50, 64]


@pytest.mark.slow
def test_it_learns_and_starts_anew_each_time(workshop):
    images, labels = bars(160, 0)
    network = workshop.fit(images, labels, seed=1)
    test, truth = bars(100, 1)
    assert np.mean(network.predict(test) == truth) > 0.9
    other = workshop.fit(images, (labels + 1) % 3, seed=2)
    assert np.mean(other.predict(test) == (truth + 1) % 3) > 0.9
    # The first was not touched by the second, and comes out the same from the same seed.
    assert np.mean(network.predict(test) == truth) > 0.9
    again = workshop.fit(images, labels, seed=1)
    for here, there in zip(network.weights, again.weights, strict=True):
        np.testing.assert_allclose(here, there, atol=1e-3)


def test_training_normalizes_as_keras_does(workshop):
    images, _ = bars(16, 3)
    workshop.fit(*bars(16, 4))
    twin = keras.models.clone_model(workshop.model)
    twin.set_weights(workshop.model.get_weights())
    expected = twin(images, training=True)
    np.testing.assert_allclose(workshop._forward(images), expected, atol=2e-4)
    for ours, theirs in zip(workshop.model.variables, twin.variables, strict=True):
        # TensorFlow's fused kernel keeps the unbiased variance: n / (n − 1) of Keras's.
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=2e-3, atol=1e-4)


def test_augmentation_moves_an_image_no_further_than_it_may(workshop):
    still = NetworkWorkshop((10, 10, 1), CLASSES, CnnSettings(degrees=0, shift=0))
    image = np.zeros((1, 10, 10, 1), np.float32)
    image[0, 4, 4] = 1
    np.testing.assert_allclose(still._augmented(image, np.array([1, 2])), image, atol=1e-6)
    many = np.repeat(image, 200, axis=0)
    moved = NetworkWorkshop((10, 10, 1), CLASSES, CnnSettings(degrees=0, shift=0.2))
    seen = np.asarray(moved._augmented(many, np.array([1, 2])))[..., 0]
    rows, columns = np.mgrid[:10, :10]
    for places in (rows, columns):
        centres = (seen * places).sum(axis=(1, 2)) / seen.sum(axis=(1, 2)) - 4
        assert 1.5 < np.abs(centres).max() <= 2.001
        assert abs(centres.mean()) < 0.4


def test_what_it_cannot_learn_from_is_refused(workshop):
    images, labels = bars(8, 0)
    with pytest.raises(InvalidInputError, match=r"must be \(10, 10, 1\)"):
        workshop.fit(images[:, :9], labels)
    with pytest.raises(InvalidInputError, match="a label for each"):
        workshop.fit(images, labels[:-1])
    with pytest.raises(InvalidInputError, match="two images"):
        workshop.fit(images[:1], labels[:1])
    with pytest.raises(InvalidInputError, match="from 0 to 2"):
        workshop.fit(images, labels + 1)
    with pytest.raises(InvalidInputError, match="other classes"):
        workshop.restore(NetworkWorkshop((10, 10, 1), ("a", "b")).model.get_weights())


@pytest.mark.parametrize(
    "wrong", [{"epochs": 0}, {"part": 2}, {"least": 90}, {"shift": 1}, {"degrees": -1}, {"rate": 0}]
)
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(InvalidParametersError):
        CnnSettings(**wrong)
