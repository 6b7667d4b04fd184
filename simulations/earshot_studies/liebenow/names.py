"""Accuracy of names for sound that is new to the encoder, also under wrong labels and attacks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from earshot_client.policy import Policy
from earshot_protocol.encoder_file import DIMENSIONS
from earshot_protocol.phases.discovery_budget import DELTA
from earshot_simulations.adversary.adversary import Adversary
from earshot_simulations.phases.environments import heard_by_some
from earshot_simulations.phases.run import NOISELESS
from earshot_simulations.phases.settings import BLOBS, Discovery, Settings
from earshot_simulations.phases.simulation import open_population
from earshot_simulations.populations import Heterogeneity
from earshot_simulations.reporting.panels import panels_for
from earshot_simulations.reporting.tables import markdown_table
from earshot_simulations.reporting.words import real
from earshot_simulations.sweeps.phase import ARI_TEST, CLEAR_NAMES, NAMES
from earshot_simulations.sweeps.rows import Figures
from earshot_simulations.sweeps.sweep import Measure
from earshot_studies.kit.outcome import Reproduction
from earshot_studies.liebenow.at_once.phase import AT_ONCE, CELLS_ALONE
from earshot_studies.liebenow.comparison import Measured, Point, compare
from earshot_studies.liebenow.contenders import ComparedEncoder, ReproductionSetup

NAME = "names"
CROWDS = ((300, 4.0), (1_000, 2.0), (3_000, 1.0), (10_000, 0.5))
"""Numbers of phones, each with the ε per phone."""
FEW_CROWDS = CROWDS[:2]
AS_IS = "as is"
TROUBLES: dict[str, dict[str, Any]] = {
    "5 % labelled": {"labelled": 0.05},
    "40 % wrong labels": {"heterogeneity": Heterogeneity(mislabelled=0.4)},
    **{
        f"{100 * share:g} % of phones {does}": {"adversary": Adversary(**{attack: share})}
        for attack, does in (
            ("swapped_labels", "swap two labels"),
            ("poisoning", "push one direction"),
            ("one_label", "give one label"),
        )
        for share in (0.01, 0.05, 0.1)
    },
}
"""Changes of settings that make names worse, by their name in tables."""
_LABELLED, _DROPOUT = 0.5, 0.05
_TITLES = {
    ARI_TEST: "clustering (ARI)",
    NAMES: "right name",
    CLEAR_NAMES: "right name, as phones say it",
    CELLS_ALONE: "ARI of cells alone",
}
_SUMS = ComparedEncoder("secure sums", AT_ONCE, Discovery.SECURE_SUM, "#54a24b", "D")


def linear_probe(settings: Settings) -> Figures:
    """Fit a linear classifier to recordings of some phones, with true labels and no noise."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import adjusted_rand_score

    with closing(open_population(settings)) as population:
        population.prepare()
        heard, held_out = heard_by_some(population, settings.seed), population.held_out()
        said = LogisticRegression(max_iter=1000).fit(heard.points, heard.scenes)
        named = said.predict(held_out.points)
    right = float((named == held_out.scenes).mean())
    found = float(adjusted_rand_score(held_out.scenes, named))
    return {ARI_TEST: found, NAMES: right, CLEAR_NAMES: right, CELLS_ALONE: 0.0}


_PROBE = ComparedEncoder(
    "linear probe", Measure("linear probe", linear_probe), Discovery.LOCAL, "#555555", "x"
)


def names(setup: ReproductionSetup, full: bool = False) -> Reproduction:
    """Measure names in every crowd, with and without noise, and under each of `TROUBLES`."""
    points: list[Point] = []
    for data in setup.data:
        for phones, epsilon in CROWDS if full else FEW_CROWDS:
            crowd: dict[str, Any] = {
                "phones": phones,
                "labelled": _LABELLED,
                "dropout": _DROPOUT,
            }
            labels: dict[str, str | float] = {"phones": phones, "epsilon": epsilon}
            quiet = setup.arm(
                _SUMS,
                data,
                {**labels, "epsilon": math.inf, "setting": AS_IS},
                **crowd,
                epsilon=NOISELESS,
            )
            usual = setup.arm(_SUMS, data, {**labels, "setting": AS_IS}, **crowd, epsilon=epsilon)
            points += [Point(usual, quiet), Point(quiet)]
            points += [
                Point(
                    setup.arm(
                        _SUMS,
                        data,
                        {**labels, "setting": trouble},
                        **{**crowd, "epsilon": epsilon, **changes},
                    ),
                    quiet,
                )
                for trouble, changes in TROUBLES.items()
            ]
        if data != BLOBS:
            ceiling: dict[str, str | float] = {
                "phones": CROWDS[0][0],
                "epsilon": math.inf,
                "setting": AS_IS,
            }
            points.append(
                Point(setup.arm(_PROBE, data, ceiling, phones=CROWDS[0][0], dimensions=DIMENSIONS))
            )
    found = compare(setup, points, tuple(_TITLES))
    rows = [each.described(_TITLES) for each in found]
    note = f"""# How well a discovery phase names

Discovery phases at their usual settings, ε per *phone* (zero-out), at δ = {DELTA:g}. ε = ∞ is the
same without noise; differences are paired by seed. Other shares of labelled recordings are part of
the setting, and {_DROPOUT:.0%} of the phones vanish. *Cells alone* is the clustering without any
label. A *linear probe* is fitted to true labels of whole embeddings, without privacy. The picture
shows the first crowd that default phones join (ε ≤ {Policy.largest_phone_epsilon:g} per phone), or
else the first.

{setup.describe("half of them labelled")}
The phones' inputs and the server's work are the product's. Plain addition replaces the secure sum,
whose result is identical, and the noise of all shares is drawn in one step.

{markdown_table(rows, list(rows[0]))}

Intervals are Student's, at 95 %, over seeds; "within noise" means that the interval contains 0.
"""
    return Reproduction(NAME, [each.row() for each in found], lambda path: _draw(found, path), note)


def drawn_crowd(crowds: Sequence[Mapping[str, Any]]) -> tuple[int, float]:
    """Return the phones and the ε of the first crowd that default phones join, or of the first."""
    joined = [each for each in crowds if each["epsilon"] <= Policy.largest_phone_epsilon]
    shown = (joined or crowds)[0]
    return shown["phones"], shown["epsilon"]


def _draw(found: Sequence[Measured], path: Path) -> None:
    """Draw one crowd, by default one that default phones join; bars of a group share their data."""
    usual = [each for each in found if each.labels["setting"] == AS_IS]
    probes = [each for each in usual if each.labels["mechanism"] == _PROBE.name]
    noisy = [each for each in usual if not math.isinf(float(each.labels["epsilon"]))]
    phones, epsilon = drawn_crowd([each.labels for each in noisy])
    crowd = [each for each in usual if each not in probes and each.labels["phones"] == phones]
    with_noise = [each for each in crowd if each in noisy]
    without = [each for each in crowd if each not in noisy]
    names_by = [
        (f"prototypes, ε = {epsilon:g} per phone", "#3182bd", with_noise, None),
        ("prototypes without noise", "#9ecae1", without, None),
        ("linear probe, without privacy", "#bdbdbd", probes, None),
    ]
    cells = (f"cells alone, ε = {epsilon:g} per phone", "#54a24b", with_noise, CELLS_ALONE)
    data = list(dict.fromkeys(str(each.labels["data"]) for each in found))
    figure, (panels,) = panels_for(2, 1, 4.2, sharey=True)
    for axis, metric, bars in (
        (panels[0], NAMES, names_by),
        (panels[1], ARI_TEST, [cells, *names_by]),
    ):
        for place, (label, colour, measured, other) in enumerate(bars):
            shown = [each.figures[other or metric] for each in measured]
            axis.bar(
                [data.index(str(each.labels["data"])) + 0.2 * place for each in measured],
                [each.mean for each in shown],
                0.19,
                yerr=[math.nan if each.wide is None else each.wide for each in shown],
                capsize=3,
                color=colour,
                label=label,
            )
        axis.set_xticks([row + 0.1 * (len(bars) - 1) for row in range(len(data))], data)
        axis.set_title(_TITLES[metric])
        axis.set_ylim(0, 1.02)
    figure.suptitle(f"{phones:,} phones, sound that no phone heard, δ = {real(DELTA)}")
    handles, labels = panels[-1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(path, dpi=110)
