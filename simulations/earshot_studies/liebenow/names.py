"""Accuracy of names for sound that is new to the encoder, also under wrong labels and attacks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

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
    "linear probe", Measure("linear probe", linear_probe), Discovery.SECURE_SUM, "#555555", "x"
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
label. A *linear probe* is fitted to true labels of whole embeddings without privacy: it is the
ceiling.

{setup.describe("half of them labelled")}
The phones' inputs and the server's work are the product's. Plain addition replaces the secure sum,
whose result is identical, and the noise of all shares is drawn in one step.

{markdown_table(rows, list(rows[0]))}

Intervals are Student's, at 95 %, over seeds; "within noise" means that the interval contains 0.
"""
    return Reproduction(NAME, [each.row() for each in found], lambda path: _draw(found, path), note)


def _draw(found: Sequence[Measured], path: Path) -> None:
    data = list(dict.fromkeys(str(each.labels["data"]) for each in found))
    figure, (panels,) = panels_for(len(data), 1, 4.8, sharey=True)
    for axis, name in zip(panels, data, strict=True):
        of_data = [each for each in found if each.labels["data"] == name]
        crowds = [
            each
            for each in of_data
            if each.labels["setting"] == AS_IS and not math.isinf(float(each.labels["epsilon"]))
        ]
        places = range(len(crowds))
        for shift, metric, colour in (
            (-0.25, CELLS_ALONE, "#9ecae1"),
            (0.0, ARI_TEST, "#54a24b"),
            (0.25, NAMES, "#3182bd"),
        ):
            axis.bar(
                [place + shift for place in places],
                [each.figures[metric].mean for each in crowds],
                0.24,
                yerr=[each.figures[metric].wide or 0.0 for each in crowds],
                capsize=3,
                color=colour,
                label=_TITLES[metric],
            )
        for each in of_data:
            if each.labels["mechanism"] == _PROBE.name:
                axis.axhline(
                    each.figures[NAMES].mean, color="#333333", linestyle=":", label="linear probe"
                )
        axis.set_xticks(
            places,
            [
                f"{each.labels['phones']:,} phones\nε = {each.labels['epsilon']:g}"
                for each in crowds
            ],
        )
        axis.set_title(name)
        axis.set_ylim(0, 1.02)
    handles, labels = panels[-1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(path, dpi=110)
