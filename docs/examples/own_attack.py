"""
An attack of your own
=====================

`Settings.adversary` has ten attacks. Another one is a class that says which phones make it, and
what they do in place of the protocol.
"""

# %%
# These phones lie aloud: they label everything with the last label, as one of the ten does, and
# put ten times as much into every sum, up to the bound of an entry, which no phone can exceed.

import numpy as np

from earshot_simulations import Attack, Settings, SummationChoice, simulate


class LoudLiars(Attack):
    key = "last label, ten times as loud"

    def __init__(self, share):
        self.share = share

    def phones(self, count, seed):
        return np.random.default_rng(seed).permutation(count)[: int(self.share * count)]

    def heard(self, phone, recordings):
        last = np.full(len(recordings.labels), 5)
        return recordings._replace(labels=last)

    def added(self, phone, values, parameters):
        return np.clip(10 * values, -parameters.bound, parameters.bound)


# %%
# How much does it take? The noise hides one phone, and it does not limit what many send.

base = Settings(phones=600, recordings=50, scenes=6, summation=SummationChoice.IDEAL, jobs=1)
for share in (0.01, 0.05, 0.1):
    run = simulate(base, attack=LoudLiars(share))
    print(f"{share:.0%}: right name {run.found.label_accuracy:.2f}")

# %%
# The names that remain, with a tenth of all phones lying.

run.plot().savefig("own_attack.png")
