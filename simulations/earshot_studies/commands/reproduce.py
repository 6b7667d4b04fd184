"""`earshot reproduce`: the table of all studies, and a command for each of them."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import Annotated, NamedTuple

from cyclopts import App, Parameter

from earshot_studies.adversaries import command as adversaries
from earshot_studies.campaigns import command as campaigns
from earshot_studies.dziedzic import command as dziedzic
from earshot_studies.liebenow import command as liebenow
from earshot_studies.muehl import command as muehl
from earshot_studies.muschiol import command as muschiol
from earshot_studies.papernot import command as papernot
from earshot_studies.pate_aae import command as pate_aae
from earshot_studies.printed_claims import printed_claims


class Study(NamedTuple):
    """A study.

    Attributes:
        command: Function whose parameters are the study's options, with its help as docstring.
        redoes: Reproduced part of a paper, by the name in `docs/references.md`.
        cpu: Rough CPU time of a study with its default options.
    """

    command: Callable[..., None]
    redoes: str
    cpu: str

    @property
    def shows(self) -> str:
        """First sentences of its help text."""
        return " ".join((inspect.getdoc(self.command) or "").partition("\n\n")[0].split())


_THESIS, _OURS = "Liebenow (2022), ", "our own"
_PERSONAL, _WINNERS = "Mühl (2021), ", "Dziedzic et al. (2023), "
_TAGGERS, _DIGITS = "Muschiol (2021), ", "Yang et al. (2021), "
_PHASES = "minutes"
_WITH_TAGGERS = "28 min, kept in --cache"
_ON_ADULT = "1 min on Adult"

STUDIES: dict[str, Study] = {
    "liebenow-9.1": Study(liebenow.linear_accuracy, _THESIS + "9.1", "hours"),
    "liebenow-9.2": Study(liebenow.embedding_space, _THESIS + "9.2", "1 min"),
    **{
        name: Study(figure, _redone, _PHASES)
        for name, figure in liebenow.FIGURES.items()
        for _redone in [_THESIS + name.rpartition("-")[2] if "liebenow" in name else _OURS]
    },
    "papernot-table-1": Study(papernot.published_votes, "Papernot et al. (2018), Table 1", "2 min"),
    "personalized-labels": Study(muehl.labels, _PERSONAL + "Tables 6.4, 6.5", _ON_ADULT),
    "personalized-accuracy": Study(muehl.accuracy, _PERSONAL + "Tables 6.6, 6.7", _ON_ADULT),
    "multi-winner-queries": Study(dziedzic.queries, _WINNERS + "Figures 1 to 4", "7 min"),
    "multi-winner-student": Study(dziedzic.student, _WINNERS + "Tables 1, 2", "1 min"),
    "capc": Study(dziedzic.capc, _WINNERS + "Tables 4, 18", "1 min"),
    "audioset-ensemble": Study(muschiol.ensemble, _TAGGERS + "chapter 5", _WITH_TAGGERS),
    "audioset-student": Study(muschiol.student, _TAGGERS + "chapter 5", _WITH_TAGGERS),
    "audioset-privacy": Study(muschiol.privacy, _TAGGERS + "chapter 5", _WITH_TAGGERS),
    "audioset-phones": Study(muschiol.phones, _TAGGERS + "chapter 5", "2 min"),
    "pate-aae": Study(pate_aae.private_digits, _DIGITS + "Table 1, Figure 5", "68 min"),
    "noisy-gradients": Study(pate_aae.noisy_gradients, _OURS, "1 min"),
    "campaign-estimates": Study(campaigns.estimated_counts, _OURS, "3 min"),
    "campaign-limits": Study(campaigns.limited_counts, _OURS, "2 min"),
    "harmful-vectors": Study(adversaries.harmful_vectors, _OURS, "5 min"),
    "printed-claims": Study(printed_claims, "costs that the papers claim", "10 s"),
}

app = App(name="reproduce", help="Reproduce a table or figure of a paper, from data that you have.")
for _name, _study in STUDIES.items():
    app.command(_study.command, name=_name)


@app.default
def listed(name: Annotated[str | None, Parameter(show=False)] = None, /) -> None:
    """List all studies.

    Args:
        name: Unknown name, for an error that lists all studies; their own names are commands.
    """
    if name is not None:
        from earshot_simulations.fields import known

        known(name, STUDIES, noun="study")
    for name, study in STUDIES.items():
        print(f"{name}: {study.redoes}; CPU: {study.cpu}")
        print(textwrap.fill(study.shows, 78, initial_indent="  ", subsequent_indent="  "))
    print("\nearshot reproduce NAME --help lists the options of a study.")
