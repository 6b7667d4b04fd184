"""`earshot reproduce`: the table of all studies, and a command for each of them.

A study is a function: its options are its parameters, its docstring is their help.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable
from typing import Annotated, Any

import typer

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

app = typer.Typer(add_completion=False)


@app.callback()
def reproduce() -> None:
    """Make a table or figure of a paper anew, from data that you have."""
    # TensorFlow says much at its start that no user can act on.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def _with_options(study: Callable[..., None]) -> Callable[..., None]:
    """Return the study with its parameters as options that its docstring describes."""
    signature = inspect.signature(study, eval_str=True)
    _, _, args = inspect.getdoc(study).partition("\nArgs:\n")  # type: ignore[union-attr]
    helps = {
        name: " ".join(text.split())
        for name, text in re.findall(r"^    (\w+): (.*(?:\n {5,}.*)*)", args, re.MULTILINE)
    }

    def option(each: inspect.Parameter) -> Any:
        names = [f"--{each.name}"] if each.annotation is bool else []
        return Annotated[each.annotation, typer.Option(*names, help=helps[each.name])]

    options = {name: option(each) for name, each in signature.parameters.items()}

    @functools.wraps(study)
    def command(**given: Any) -> None:
        study(**given)

    command.__annotations__ = options
    command.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[
            each.replace(annotation=options[name]) for name, each in signature.parameters.items()
        ]
    )
    return command


for _name, _study in STUDIES.items():
    _help = str(inspect.getdoc(_study)).partition("\n\n")[0]
    app.command(_name, help=" ".join(_help.split()))(_with_options(_study))
