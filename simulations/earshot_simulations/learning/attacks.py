"""The part of a report about an adversary."""

from __future__ import annotations

from earshot_simulations.adversary.success import Success
from earshot_simulations.reporting.markup import alert, lead, section, table
from earshot_simulations.reporting.words import NOTHING, counted, percent, real, whole

ATTACKS = {
    "poisoning": "heard nothing but a place that nobody else heard, and sent it without noise",
    "ballot_stuffing": "cast ballots as large as a sum can carry, without noise",
    "wrong_shares": "revealed wrong shares of their neighbours' secrets",
    "garbage": "answered every task with random bytes",
    "dropouts": "vanished together before the last round of the last secure sum",
}
"""Actions of the phones that make an attack, by its name in `Adversary`."""


def outcome(success: Success) -> str:
    """Return the outcome of an attack in one sentence."""
    if success.published is None:
        return "The phase ended without a result."
    if not success.published:
        return "The adversary's place was not published."
    counted_to_it = (
        f"{percent(success.share)} of held-out recordings, none of which belongs there, would be"
        if success.share
        else "no held-out recording would be"
    )
    named = "under the label that the adversary wanted" if success.named else "under no such label"
    return f"The adversary's place was published {named}; {counted_to_it} counted to it."


def adversary_section(success: Success | None, by_sums: bool = False) -> str:
    """Format the report's section on the adversary; empty if no phone was corrupted.

    Args:
        success: Outcome of the attack; None if no phone was corrupted.
        by_sums: Whether environments were found by secure sums, in which no vote keeps a place.
    """
    if success is None:
        return ""
    words = (
        f"An adversary controlled {counted(success.controlled, 'phone')}; noise and graph allow "
        f"for at most {real(success.expected)}. It wanted a place that nobody heard to be "
        "published under the first label."
    )
    attacks = table(
        "Actions of its phones; a phone may make several attacks.",
        ("Attack", "#Phones", "Action"),
        [
            [name.replace("_", " "), whole(count), ATTACKS[name]]
            for name, count in success.phones.items()
        ],
    )
    came = table(
        "Outcome.",
        ("", "#Count"),
        [
            ["Answers of its phones that the server refused", whole(success.refused)],
            ["Votes for labels in the adversary's cell", _optional(success.votes)]
            if by_sums
            else ["Votes to keep the adversary's place", _optional(success.votes)],
            [
                f"Other {'cells' if by_sums else 'kept centroids'} left without a name",
                whole(success.displaced),
            ],
        ],
    )
    return section("The adversary", lead(words) + alert(outcome(success)) + attacks + came)


def _optional(votes: float | None) -> str:
    return NOTHING if votes is None else whole(votes)
