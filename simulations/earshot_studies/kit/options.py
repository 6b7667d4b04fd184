"""Help texts and signatures of study commands that share options."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any


def described(study: Callable[..., None], shown: str, options: str, *without: str) -> None:
    """Set the help text of a study's command, without the options that it does not take.

    Args:
        study: Function whose parameters are the options; those left out keep their defaults.
        shown: Help text of the study.
        options: Help texts of all options, as the `Args` of a docstring.
        without: Names of the options that are left out.
    """
    signature = inspect.signature(study)
    kept = [each for each in signature.parameters.values() if each.name not in without]
    typed: Any = study
    typed.__signature__ = signature.replace(parameters=kept)
    for name in without:
        options = re.sub(rf"^ {{8}}{name}: .*\n( {{12}}.*\n)*", "", options, flags=re.MULTILINE)
    study.__doc__ = f"{shown}\n{options}"
