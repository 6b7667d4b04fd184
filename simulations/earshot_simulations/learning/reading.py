"""Remarks that a reader should know before trusting the figures of a simulation."""

from __future__ import annotations

from collections.abc import Sequence

from earshot_protocol.privacy.significance import are_clear
from earshot_protocol.shipped_encoders import SHIPPED_ENCODERS
from earshot_simulations.adversary.success import Success
from earshot_simulations.learning.routes import Routes
from earshot_simulations.learning.settings import (
    BLOBS,
    SOUNDSCAPES,
    Agreement,
    Discovery,
    Settings,
    Summation,
)
from earshot_simulations.populations import Population
from earshot_simulations.reporting.words import counted

_UNHEARD = (
    "(contrast-2's recipe with 1,500 steps, two folds of ESC-10, 500 phones of 50 recordings; "
    "docs/encoders.md)"
)
REAL_SOUND = {
    Discovery.SECURE_SUM: "Real sound that its encoder had never heard got the right name 71 % of "
    "the time at ε = 2 per phone, and 55 % by names that stand clear of the noise " + _UNHEARD,
    Discovery.LOCAL: "Real sound that its encoder had never heard got the right name 67 % of the "
    "time at ε = 2.8 per recording " + _UNHEARD,
}
"""Results on real sound, to compare with figures on synthesized scenes."""
_MOSTLY = 0.5
"""Share of clearly named places from which on a note has nothing to add."""


def try_it(routes: Routes) -> str:
    """Return the command that simulates the same over one's own sound."""
    route = "" if routes is Routes.SECURE_SUM else f"--discovery {routes} "
    return f"earshot simulate {route}--data FOLDER --recordings 100 --dropout 0.1 --out out/real"


def reading(
    settings: Settings,
    population: Population,
    success: Success | None,
    name_p_values: Sequence[float] = (),
) -> list[str]:
    """Return notes on a run, in plain sentences, the most important first.

    Args:
        settings: Settings of the run.
        population: Phones and their recordings.
        success: Success of an adversary; None if there was none.
        name_p_values: Values as in `Run.name_p_values`; empty if no names were voted for.
    """
    notes = []
    refusals = settings.refusals()
    if refusals and settings.agreement is Agreement.RECORDING:
        notes.append(
            "This protects single recordings, but not phones: they agreed to whatever the "
            f"phase costs a phone (--policy {Agreement.RECORDING}). A phone with the default "
            f"policy would not take part: {'; '.join(refusals)}."
        )
    elif refusals:
        notes.append(
            "No phone with the default policy would take part in this phase: "
            f"{'; '.join(refusals)}."
        )
    if settings.summation is Summation.IDEAL:
        notes.append("The secure sum was replaced by plain addition: nothing was protected.")
    if success is not None and success.controlled > success.expected:
        notes.append(
            f"An adversary controlled {success.controlled} phones, but noise and graph allow for "
            f"at most {success.expected:g}: less was protected than this report says."
        )
    if settings.data == SOUNDSCAPES and settings.encoder in (None, *SHIPPED_ENCODERS):
        notes.append(
            "These scenes are synthesized, and the shipped encoder was trained on such scenes: it "
            "flatters sound that it knows."
        )
        notes.append(f"{REAL_SOUND[settings.discovery]}.")
    elif settings.data != BLOBS:
        notes.append(
            f"The figures hold for sound like this and the encoder '{population.encoder}'. An "
            "encoder flatters sound that it was trained on, even without labels; the shipped ones "
            "heard four folds of ESC-10, spoken digits and synthesized scenes, the newer one also "
            "free sounds."
        )
    found = len(name_p_values)
    clear = sum(are_clear(name_p_values, found))
    if clear < _MOSTLY * found:
        noun = "centroid" if settings.discovery is Discovery.LOCAL else "cell"
        few = f"Only {clear}" if clear else "None"
        notes.append(
            f"{few} of {counted(found, noun)} got a name that stands clear of the noise: more "
            "phones or a larger ε name more of them."
        )
    return notes
