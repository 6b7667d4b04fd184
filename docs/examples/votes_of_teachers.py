"""
Votes of teachers
=================

250 teachers, each with private records of its own, label samples that none of them owns. Noise
hides every teacher, a budget of ε limits what all answers together say about it, and a student
learns from the answers.
"""

# %%
# The first command draws votes on samples whose classes are known. The second asks about one sample
# after the other until ε = 2 is spent, and answers where enough teachers agree.
# :doc:`/docs/private-votes` explains the costs.

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np


def earshot(*words: object) -> None:
    command = [sys.executable, "-m", "earshot_client", *map(str, words)]
    print(subprocess.check_output(command, text=True))  # noqa: S603 - a command of our own


folder = TemporaryDirectory()
votes, labels, student = (Path(folder.name, name) for name in ("votes", "labels", "student"))
rule = ("--teachers", 250, "--classes", 10, "--threshold", 200, "--check-sigma", 150, "--sigma", 40)
budget = ("--epsilon", 2, "--delta", 1e-5)

earshot("pate", "example", votes)
earshot("pate", "label", "confident", votes / "votes.npy", *rule, *budget, "--out", labels)

# %%
# The student sees the answered samples only.

earshot(
    *("pate", "student", labels / "answers.csv", "--samples", votes / "samples.npy"),
    *("--classes", 10, "--out", student),
)

# %%
# Noise is fresh in each run, so figures differ a little. The student beats nearly every teacher,
# and may be published.

truth = np.load(votes / "truth.npy")
teachers = (np.load(votes / "votes.npy") == truth).mean(axis=1)
accuracy = (np.load(student / "scores.npy").argmax(axis=1) == truth).mean()
folder.cleanup()

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.hist(100 * teachers, bins=20, color="0.75", label="teachers")
axes.axvline(100 * accuracy, color="tab:blue", label=f"the student: {accuracy:.0%}")
axes.set(xlabel="right labels [%]", ylabel="number of teachers", title="One budget of ε = 2")
axes.legend()
figure.savefig("votes_of_teachers.png")
