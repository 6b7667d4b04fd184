"""
A population of your own
========================

Any object that says who has heard what can take part in a phase: embeddings of a data set, or a
crowd that you draw, as here. It needs five things.
"""

# %%
# `earshot_simulations.Population` lists the five, and what else a population may have. Here are
# phones of four kinds of people: each hears mostly the sounds of its kind. `recordings` is asked
# several times, and in other processes, so a phone's number decides what it returns.

import numpy as np

from earshot_simulations import Recordings, Settings, SummationChoice, simulate

SOUNDS = ("kitchen", "office", "street", "garden", "tram", "gym")


class Town:
    labels, phones, dimensions = SOUNDS, 600, 16
    name, key = "a town", "four kinds of people, 1"

    def recordings(self, phone):
        random = np.random.default_rng([7, phone])
        habit = np.full(len(SOUNDS), 0.05)
        habit[[phone % 4, phone % 4 + 2]] = 0.4
        return self._heard(random, random.choice(len(SOUNDS), 60, p=habit), labelled=0.2)

    def held_out(self):
        scenes = np.repeat(np.arange(len(SOUNDS)), 100)
        return self._heard(np.random.default_rng(8), scenes, labelled=1)

    def _heard(self, random, scenes, labelled):
        places = np.random.default_rng(9).normal(size=(len(SOUNDS), 16))
        points = places[scenes] + random.normal(0, 0.5, (len(scenes), 16))
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        labels = np.where(random.random(len(scenes)) < labelled, scenes, -1)
        return Recordings(points, labels, scenes)


# %%
# The phase is one by secure sums, of ε = 2 per phone. `SummationChoice.IDEAL` adds without the
# cryptography, with the same result bit for bit. The number of phones comes from the population.

settings = Settings(summation=SummationChoice.IDEAL, jobs=1)
run = simulate(settings, population=Town())
print(run)

# %%
# Public start centroids are random here, as the population brings none (`start`). Large dots
# are prototypes, where the last sum placed each label; small ones are cells, in the colour of the
# label that names them.

run.plot().savefig("own_population.png")
