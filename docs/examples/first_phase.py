"""
A first phase
=============

After this page you have run a phase and saved its picture. A crowd of phones finds places and names
them by secure sums; the picture shows what phones heard, and the prototype of each label: the
direction in which a new sound gets this name.
"""

# %%
# Install the simulator, for Python 3.11 or later (in a clone: ``pip install '.[simulations]'``):
#
# .. code-block:: sh
#
#    pip install 'earshot-sensing[simulations]'
#
# 300 simulated phones have each heard 50 points of four scenes. The budget is ε = 2 per phone,
# whatever a phone heard. `SummationChoice.IDEAL` adds without the cryptography, with the same
# result bit for bit, in a fraction of the time.

from earshot_simulations import Settings, SummationChoice, simulate

settings = Settings(
    phones=300, recordings=50, scenes=4, summation=SummationChoice.IDEAL, jobs=1, seed=1
)
run = simulate(settings)
print(run)

# %%
# `run.found` has the scores and the arrays of the result. The adjusted Rand index (ARI) compares
# the places with the true scenes of recordings that no phone heard: 1 is perfect, and 0 chance.

print("names:", *run.found.names)
print(f"clustering (ARI) {run.found.ari_test:.3f}, right name {run.found.label_accuracy:.1%}")

# %%
# A script saves the picture to a file; in a notebook, `run.plot()` as the last line of a cell shows
# it. Points are drawn in the two directions in which they differ most.

run.plot().savefig("first_phase.png")
