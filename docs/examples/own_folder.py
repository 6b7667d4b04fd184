"""
A folder of your own
====================

A phase hears any folder of sound in which each class is a folder of files. This one is written
here, so that nothing has to be downloaded: replace it with your own.
"""

# %%
# Each file is another machine of its kind: eight seconds, with a pitch or a pace of its own, in
# some noise.

import wave
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from earshot_simulations import Settings, SummationChoice, simulate

RATE = 16_000
TIME = np.arange(8 * RATE) / RATE


def fan(random):
    noise = np.cumsum(random.normal(size=len(TIME) + 400))
    return (noise[400:] - noise[:-400]) / 20


def pump(random):
    beats = np.sin(2 * np.pi * random.uniform(1.5, 3) * TIME)
    return random.normal(size=len(TIME)) * np.maximum(beats, 0) ** 4


def saw(random):
    return 2 * (random.uniform(90, 140) * TIME % 1) - 1


def siren(random):
    phase = 700 * TIME + 100 * np.sin(2 * np.pi * random.uniform(0.4, 0.8) * TIME)
    return np.sin(2 * np.pi * phase)


folder = TemporaryDirectory()
machines = Path(folder.name, "machines")
for number, sound in enumerate((fan, pump, saw, siren)):
    place = machines / sound.__name__
    place.mkdir(parents=True)
    for take in range(10):
        random = np.random.default_rng([number, take])
        heard = sound(random) + 0.3 * random.normal(size=len(TIME))
        with wave.open(str(place / f"{take}.wav"), "wb") as file:
            file.setparams((1, 2, RATE, 0, "NONE", "not compressed"))
            file.writeframes((20_000 * heard / abs(heard).max()).astype("<i2").tobytes())

# %%
# `earshot simulate --data machines` runs the same phase from the command line. Each second of a
# file is a recording. Whole files are held out, so names are judged by machines that no phone has
# heard.

settings = Settings(
    phones=300, recordings=50, data=machines, summation=SummationChoice.IDEAL, jobs=1
)
run = simulate(settings)
folder.cleanup()
print(run)

# %%
# Synthesized machines are easy to tell apart: expect less of sound from life. Grey is what phones
# heard, small dots are cells, and large ones prototypes, where the last sum placed each name.

run.plot()
