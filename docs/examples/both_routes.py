"""
Both routes
===========

The same crowd finds its places on both routes. By secure sums, ε = 2 protects a whole phone. The
local route protects each recording with ε = 2.5, and a phone's recordings add up.
"""

# %%
# Default phones refuse the local route because of what it costs a phone. Simulated ones accept it,
# as their policy there limits the cost of a recording only.

from dataclasses import replace

import matplotlib.pyplot as plt

from earshot_simulations import Discovery, Settings, SummationChoice, result, simulate

base = Settings(
    phones=300, recordings=50, scenes=4, summation=SummationChoice.IDEAL, jobs=1, seed=1
)
runs = {
    "secure sums": simulate(base),
    "local": simulate(replace(base, discovery=Discovery.LOCAL)),
}
for route, run in runs.items():
    print(route, run, sep=":\n", end="\n\n")

# %%
# `result` returns what `result.json` holds, here the cost of all steps together.

costs = {
    unit: [result(run)["privacy"]["together"][unit]["epsilon"] for run in runs.values()]
    for unit in ("recording", "phone")
}
right = [100 * run.found.label_accuracy for run in runs.values()]

figure, (left, middle) = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
bars = left.bar(list(runs), right, color=["tab:blue", "tab:orange"])
left.bar_label(bars, fmt="%.0f %%")
left.set(title="Right names on unheard points", ylim=(0, 110), ylabel="%")
for shift, (unit, epsilons) in zip((-0.2, 0.2), costs.items(), strict=True):
    places = [place + shift for place in range(len(runs))]
    bars = middle.bar(places, epsilons, 0.4, label=f"of a {unit}")
    middle.bar_label(bars, fmt="%.3g")
middle.set(title="Total ε", yscale="log", xticks=range(len(runs)), xticklabels=list(runs))
middle.set(yticks=(1, 10, 100), yticklabels=("1", "10", "100"), ylim=(1, 200))
middle.legend(loc="upper left")
figure.savefig("both_routes.png")
