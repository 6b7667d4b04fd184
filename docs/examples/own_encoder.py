"""
An encoder of your own
======================

An encoder turns one second of sound into a vector of length 1. Phones of a simulation hear
synthesized environments, or a folder of sound, by yours.
"""

# %%
# This one measures the level of sound in 24 bands of frequency, spaced like those of the ear: a
# baseline without any training. It hears 16,000 samples per second.

import numpy as np

from earshot_simulations import Settings, SummationChoice, simulate

EDGES = np.geomspace(60, 7_900, 25).astype(int)


class Bands:
    name, dimensions, rate = "bands-1", 24, 16_000
    key = "24 bands from 60 to 7,900 Hz"

    def embed(self, samples):
        power = np.abs(np.fft.rfft(samples, axis=1)) ** 2
        levels = np.log(np.add.reduceat(power, EDGES[:-1], axis=1) + 1e-6)
        shape = levels - levels.mean(axis=1, keepdims=True)
        return shape / np.linalg.norm(shape, axis=1, keepdims=True)


# %%
# Without `project`, vectors are compared whole. Without `start_centroids`, a phase by secure sums
# begins at random public directions.

settings = Settings(
    phones=300,
    recordings=50,
    data="soundscapes",
    scenes=6,
    pool=40,
    summation=SummationChoice.IDEAL,
    jobs=1,
)
run = simulate(settings, encoder=Bands())
print(run)

# %%
# The shipped encoder knows these sounds; this one has never heard any.

run.plot().savefig("own_encoder.png")
