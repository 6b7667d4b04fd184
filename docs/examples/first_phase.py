"""
A first phase
=============

A crowd of phones finds places and names them by secure sums. The picture shows what phones heard,
and the prototype of each label: the direction in which a new sound gets this name.
"""

# %%
# 300 simulated phones have each heard 50 points of four scenes. The budget is ε = 2 per phone,
# whatever a phone heard. `SummationChoice.IDEAL` adds without the cryptography, with the same
# result bit for bit, in a fraction of the time.

import matplotlib.pyplot as plt
import numpy as np

from earshot_simulations import Settings, SummationChoice, simulate

settings = Settings(
    phones=300, recordings=50, scenes=4, summation=SummationChoice.IDEAL, jobs=1, seed=1
)
run = simulate(settings)
print(run)

# %%
# `run.found` holds arrays of the result. Points are drawn in the two directions in which the
# prototypes differ most.

found = run.found
centre = found.global_centroids.mean(axis=0)
_, _, directions = np.linalg.svd(found.global_centroids - centre, full_matrices=False)
points, prototypes = (
    (rows - centre) @ directions[:2].T for rows in (found.points, found.global_centroids)
)

figure, axes = plt.subplots(figsize=(7, 5), layout="constrained")
axes.scatter(*points.T, s=6, color="0.75", label="what phones heard")
axes.scatter(*prototypes.T, s=70, marker="D", color="tab:blue", label="prototypes")
for name, place in zip(found.names, prototypes, strict=True):
    axes.annotate(name or "no clear name", place, (8, 8), textcoords="offset points")
axes.set(title=f"Right names on unheard points: {found.label_accuracy:.0%}", xticks=[], yticks=[])
axes.legend(loc="best")
plt.show()
