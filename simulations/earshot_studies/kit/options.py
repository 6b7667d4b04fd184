"""Commands of studies that share options, each with those alone that it takes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any


def described(study: Callable[..., None], shown: str, options: str, *without: str) -> None:
    """Give a study's command its help text, and leave out options that it does not take.

    Args:
        study: Study, whose parameters are its options; those left out keep their defaults.
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
