from __future__ import annotations

import numpy as np

from earshot_client.encoder import default_encoder
from earshot_models.soundscapes import SCENES, synthesize
from earshot_simulations.interim_encoder import SEED, fit_interim_encoder


def test_the_recipe_gives_the_packaged_encoder() -> None:
    generator = np.random.default_rng(SEED + 1)
    sound = np.concatenate([synthesize(scene, 5, generator) for scene in SCENES])
    again, packaged = fit_interim_encoder().embed(sound), default_encoder().embed(sound)
    # The file is rounded to float16, and processors differ in the last bits of sines.
    np.testing.assert_allclose(again, packaged, atol=2e-3)
