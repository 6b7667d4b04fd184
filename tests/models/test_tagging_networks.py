"""The networks of Table 4.2, counted by hand."""

import numpy as np
import pytest

from earshot_models.tagging import networks
from earshot_models.tagging.mel_power import PAPER
from earshot_protocol.errors import InvalidParametersError


def resnet(blocks, labels, bands):
    """Weights of a ResNet on one channel, as torchvision has it, and Muschiol's head."""
    total = 2 * bands  # the moving mean and deviation of each band
    total += 7 * 7 * 64 + 4 * 64
    before = 64
    for group, number in enumerate(blocks):
        channels = 64 * 2**group
        for block in range(number):
            total += 9 * before * channels + 9 * channels * channels + 2 * 4 * channels
            if group and not block:
                total += before * channels + 4 * channels
            before = channels
    total += 512 * 512 + 512 + 4 * 512
    total += 512 * 256 + 256 + 4 * 256
    return total + 256 * labels + labels


def vgg(convolutions, labels, frames, bands):
    total, before = 2 * bands, 1
    for channels, number in zip((64, 128, 256, 512, 512), convolutions, strict=True):
        for _ in range(number):
            total += 9 * before * channels + channels
            before = channels
    flat = (frames // 32) * (bands // 32) * 512
    return total + flat * 4096 + 4096 + 4096 * 4096 + 4096 + 4096 * labels + labels


@pytest.mark.parametrize(
    ("name", "layers"), [("resnet18", 18), pytest.param("resnet34", 34, marks=pytest.mark.slow)]
)
def test_resnets_are_those_of_the_table(name, layers):
    model = networks.build(name, PAPER.shape, 153)
    blocks = networks.RESNETS[name]
    assert 2 * sum(blocks) + 2 == layers
    assert model.count_params() == resnet(blocks, 153, 64)
    assert model.output_shape == (None, 153)


@pytest.mark.slow  # 200 million weights and more
@pytest.mark.parametrize(("name", "layers"), [("vgg11", 11), ("vgg19", 19)])
def test_vggs_are_those_of_the_table(name, layers):
    model = networks.build(name, PAPER.shape, 153)
    convolutions = networks.VGGS[name]
    assert sum(convolutions) + 3 == layers
    assert model.count_params() == vgg(convolutions, 153, *PAPER.shape)


@pytest.mark.slow
def test_downsampling_is_torchvisions():
    # 1001 × 64 → 501 × 32 by the first convolution → 251 × 16 by pooling, then three halvings.
    model = networks.build("resnet18", PAPER.shape, 2)
    # What is active, and what was pooled; padding in between has sizes of its own.
    kinds = ("ReLU", "MaxPooling2D")
    sizes = [each.output.shape[1:3] for each in model.layers if type(each).__name__ in kinds]
    assert list(dict.fromkeys(sizes)) == [(501, 32), (251, 16), (126, 8), (63, 4), (32, 2)]


def test_the_small_network_is_small():
    model = networks.build("small", (51, 40), 20)
    assert model.count_params() < 50_000
    log_mel = np.random.default_rng(0).normal(size=(3, 51, 40)).astype(np.float32)
    said = model(log_mel, training=False)
    assert said.shape == (3, 20)
    assert np.isfinite(np.asarray(said)).all()


@pytest.mark.parametrize("name", ["resnet18", "small"])
def test_normalization_has_pytorchs_constants(name):
    model = networks.build(name, (40, 40), 3)
    normalizations = [each for each in model.layers if hasattr(each, "moving_variance")]
    assert len(normalizations) >= 4
    assert {(each.momentum, each.epsilon) for each in normalizations} == {(0.9, 1e-5)}
    # The first one has nothing to learn.
    assert len(normalizations[0].trainable_variables) == 0


@pytest.mark.parametrize(
    "wrong",
    [
        ("resnet50", (40, 40), 3),
        ("vgg11", (40, 31), 3),
        ("small", (7, 40), 3),
        ("small", (9, 9), 0),
    ],
    ids=["name", "bands", "frames", "labels"],
)
def test_what_cannot_be_built_is_refused(wrong):
    with pytest.raises(InvalidParametersError):
        networks.build(*wrong)
