"""`earshot reproduce`: the table of all studies, and a command for each of them.

A study is a function: its options are its parameters, its docstring is their help.
"""

from __future__ import annotations

from collections.abc import Callable

from cyclopts import App

from earshot_studies.dziedzic import command as dziedzic
from earshot_studies.liebenow import command as liebenow
from earshot_studies.muehl import command as muehl
from earshot_studies.muschiol import command as muschiol
from earshot_studies.papernot import command as papernot
from earshot_studies.pate_aae import command as pate_aae

STUDIES: dict[str, Callable[..., None]] = {
    "liebenow-9.1": liebenow.linear_accuracy,
    "liebenow-9.2": liebenow.embedding_space,
    **liebenow.FIGURES,
    "papernot-table-1": papernot.published_votes,
    "personalized-labels": muehl.labels,
    "personalized-accuracy": muehl.accuracy,
    "multi-winner-queries": dziedzic.queries,
    "multi-winner-student": dziedzic.student,
    "capc": dziedzic.capc,
    "audioset-ensemble": muschiol.ensemble,
    "audioset-student": muschiol.student,
    "audioset-privacy": muschiol.privacy,
    "audioset-phones": muschiol.phones,
    "pate-aae": pate_aae.private_digits,
    "pate-gan-attacks": pate_aae.attacks,
}

app = App(name="reproduce", help="Reproduce a table or figure of a paper, from data that you have.")
for _name, _study in STUDIES.items():
    app.command(_study, name=_name)
