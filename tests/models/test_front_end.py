from __future__ import annotations

import numpy as np
import pytest
from keras import ops

from earshot_client.lite_rt_encoder import spectrum
from earshot_models.front_end import LogMel
from earshot_models.soundscapes import SCENES, synthesize
from earshot_protocol.errors import InvalidParametersError


def sounds() -> np.ndarray:
    generator = np.random.default_rng(0)
    scenes = [synthesize(scene, 3, generator) for scene in SCENES]
    quiet = 1e-6 * generator.standard_normal((1, 8000))
    return np.concatenate([*scenes, quiet, np.zeros((1, 8000))]).astype(np.float32)


def test_training_sees_what_the_phone_computes() -> None:
    sound = sounds()
    trained = ops.convert_to_numpy(LogMel(mask=1.0)(sound))[..., 0]
    np.testing.assert_allclose(trained, spectrum(sound), atol=1e-4)


def test_masks_are_bands_and_times_that_hold_the_mean() -> None:
    sound = sounds()[:20]
    layer = LogMel(mask=1.0, bands=8, frames=10, seed=1)
    plain = ops.convert_to_numpy(layer(sound))[..., 0]
    masked = ops.convert_to_numpy(layer(sound, training=True))[..., 0]
    for before, after in zip(plain, masked, strict=True):
        changed = before != after
        bands, frames = changed.all(axis=0), changed.all(axis=1)
        assert 1 <= bands.sum() <= 8
        assert 1 <= frames.sum() <= 10
        assert (changed == (bands[np.newaxis] | frames[:, np.newaxis])).all()
        for mask in (bands, frames):
            (where,) = np.nonzero(mask)
            assert where[-1] - where[0] + 1 == len(where)  # in one piece
        np.testing.assert_allclose(after[changed], before.mean(), atol=1e-4)
    again = ops.convert_to_numpy(layer(sound, training=True))[..., 0]
    assert not (again == masked).all()


def test_masks_come_as_often_as_asked() -> None:
    sound = np.repeat(sounds()[:1], 400, axis=0)
    layer = LogMel(mask=0.3, seed=2)
    changed = ops.convert_to_numpy(layer(sound, training=True) != layer(sound))[..., 0]
    assert changed.all(axis=1).any(axis=1).mean() == pytest.approx(0.3, abs=0.08)
    assert changed.all(axis=2).any(axis=1).mean() == pytest.approx(0.3, abs=0.08)


def test_bad_masks_are_named() -> None:
    for arguments in ({"mask": 1.5}, {"bands": 0}, {"frames": 31}):
        with pytest.raises(InvalidParametersError, match=f"{next(iter(arguments))}="):
            LogMel(**arguments)
