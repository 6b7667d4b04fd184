"""What a reader should know before trusting the figures of a simulation."""

from __future__ import annotations

from earshot_protocol.geometry import Geometry
from earshot_protocol.shipped_encoders import SHIPPED_ENCODERS
from earshot_simulations.adversary.success import Success
from earshot_simulations.learning.settings import (
    BLOBS,
    SOUNDSCAPES,
    Agreement,
    Discovery,
    Settings,
    Summation,
)
from earshot_simulations.populations import Population

_UNHEARD = (
    "(a shorter run of contrast-2's recipe, two folds of ESC-10, 500 phones of 100 recordings; "
    "docs/encoders.md)"
)
REAL_SOUND = {
    Discovery.SECURE_SUM: "Real sound that its encoder had never heard got the right name 70 % of "
    "the time at ε = 2 per phone, and 59 % by names that stand clear of the noise " + _UNHEARD,
    Discovery.LOCAL: "Real sound that its encoder had never heard got the right name 26 % of the "
    "time at ε = 3 per recording, and 57 % without noise " + _UNHEARD,
}
"""What a reader of figures on synthesized scenes should compare them with."""
TRY_IT = "earshot simulate --data FOLDER --recordings 100 --dropout 0.1 --out out/real"


def reading(settings: Settings, population: Population, success: Success | None) -> list[str]:
    """Notes on a run, in plain sentences, what matters most first."""
    notes = []
    refusals = settings.refusals()
    if refusals and settings.agreement is Agreement.RECORDING:
        notes.append(
            "Single recordings are protected here, and phones are not: they agreed to whatever the "
            f"phase costs a phone (--policy {Agreement.RECORDING}). A phone as it comes would not "
            f"take part: {'; '.join(refusals)}."
        )
    elif refusals:
        notes.append(f"No phone as it comes would take part in this phase: {'; '.join(refusals)}.")
    if settings.summation is Summation.IDEAL:
        notes.append("The secure sum was replaced by plain addition: nothing was protected.")
    if success is not None and success.controlled > success.expected:
        notes.append(
            f"An adversary controlled {success.controlled} phones, and noise and graph were made "
            f"for at most {success.expected:g}: less was protected than is said here."
        )
    if settings.data == SOUNDSCAPES and settings.encoder in (None, *SHIPPED_ENCODERS):
        notes.append(
            "These scenes are synthesized, and the shipped encoder was trained on such: it "
            f"flatters sound that it knows. {REAL_SOUND[settings.discovery]}."
        )
    elif settings.data != BLOBS:
        notes.append(
            f"The figures hold for sound like this and the encoder '{population.encoder}'. An "
            "encoder flatters sound that it was trained on, even without labels; the shipped ones "
            "heard four folds of ESC-10, spoken digits and synthesized scenes, the newer one free "
            "sounds too."
        )
    if population.geometry is Geometry.SPHERICAL and settings.discovery is Discovery.LOCAL:
        notes.append(
            "The local route spends each phone's budget on that phone's recordings alone, which "
            "leaves little of the clustering at a realistic ε: read these figures as a baseline."
        )
    return notes
