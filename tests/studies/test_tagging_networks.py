"""The network: its size, its normalization, and what it cannot be built for."""

import numpy as np
import pytest

from earshot_protocol.errors import InvalidParametersError
from earshot_studies.muschiol.tagging import networks


def test_the_small_network_is_small():
    model = networks.build((51, 40), 20)
    assert model.count_params() < 50_000
    log_mel = np.random.default_rng(0).normal(size=(3, 51, 40)).astype(np.float32)
    said = model(log_mel, training=False)
    assert said.shape == (3, 20)
    assert np.isfinite(np.asarray(said)).all()


def test_normalization_has_pytorchs_constants():
    model = networks.build((40, 40), 3)
    normalizations = [each for each in model.layers if hasattr(each, "moving_variance")]
    assert len(normalizations) >= 4
    assert {(each.momentum, each.epsilon) for each in normalizations} == {(0.9, 1e-5)}
    # The first one has nothing to learn.
    assert len(normalizations[0].trainable_variables) == 0


@pytest.mark.parametrize(
    "wrong",
    [
        ((40, 7), 3),
        ((7, 40), 3),
        ((9, 9), 0),
    ],
    ids=["bands", "frames", "labels"],
)
def test_what_cannot_be_built_is_refused(wrong):
    with pytest.raises(InvalidParametersError):
        networks.build(*wrong)
