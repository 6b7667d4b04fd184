"""
ε against names
===============

How much of a phone's privacy has to be spent until names are right? A sweep simulates each budget
with several seeds, and the picture shows the mean with its interval.
"""

# %%
# A sweep writes tables: ``pip install 'earshot-sensing[simulations,tables]'``.
#
# `sweep` runs every point with every seed, keeps each figure in a folder, and would continue there
# if it were interrupted. `PolicyChoice.ANYTHING` lets phones accept budgets above the usual 2.

from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt

from earshot_simulations import PolicyChoice, Settings, SummationChoice, sweep

base = Settings(
    phones=100,
    recordings=20,
    scenes=10,
    summation=SummationChoice.IDEAL,
    policy=PolicyChoice.ANYTHING,
    jobs=1,
)
with TemporaryDirectory() as folder:
    table = sweep(base, {"epsilon": [0.5, 1.0, 2.0, 4.0, 8.0]}, folder, seeds=3)
print(table)

# %%
# An estimate is a mean over the seeds with its 95 % interval, which stays between 0 and 1.

names = table.estimates("label_accuracy")
epsilons = [arm.labels["epsilon"] for arm in table.plan.arms]
means = [100 * each.mean for each in names]
low, high = zip(*[[100 * end for end in each.ends] for each in names], strict=True)

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.fill_between(epsilons, low, high, color="tab:blue", alpha=0.2, label="95 % interval")
axes.plot(epsilons, means, "o-", color="tab:blue", label="mean of three seeds")
axes.set(xscale="log", xlabel="ε of a phone", ylabel="right names [%]", ylim=(0, 105))
axes.set(xticks=epsilons, xticklabels=[f"{each:g}" for each in epsilons])
axes.minorticks_off()
axes.set_title("100 phones, ten scenes, 20 recordings each")
axes.legend(loc="lower right")
figure.savefig("epsilon_against_names.png")
