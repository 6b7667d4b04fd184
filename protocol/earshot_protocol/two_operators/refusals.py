"""Refusals of a helper, with the names that it sends to its leaders."""

from __future__ import annotations

from earshot_protocol.errors import RemoteError


class HelperRefusalError(RemoteError):
    """Refusal of a leader's request, by name.

    Attributes:
        name: Name of the reason, for the leader's program.
        again: Whether the same request may be accepted later; nothing was used up.
        seconds: Seconds after which it may be, where `again` is true.
    """

    name = "refused"
    again = False

    def __init__(self, message: str, seconds: float = 0.0) -> None:
        super().__init__(message)
        self.seconds = seconds


class UnknownLeaderError(HelperRefusalError):
    """A request of a leader that this helper does not serve."""

    name = "unknown_leader"


class UnwantedOfferError(HelperRefusalError):
    """A sum that this helper's policy does not offer."""

    name = "against_policy"


class TooManyOffersError(HelperRefusalError):
    """More sums than this helper offers one leader a day."""

    name, again = "too_many_offers", True


class UnknownSumError(HelperRefusalError):
    """A list for a sum that was never offered, or another request for one that was."""

    name = "unknown_sum"


class EarlyListError(HelperRefusalError):
    """A list that comes while phones may still report."""

    name, again = "early", True


class LateListError(HelperRefusalError):
    """A list that comes after the time until which this helper answers."""

    name = "late"


class AnsweredError(HelperRefusalError):
    """A second list for a sum that has its total."""

    name = "already_answered"


class SmallListError(HelperRefusalError):
    """A list of fewer reports than the total must be made of, or fewer that open."""

    name = "too_few"


class WrongListError(HelperRefusalError):
    """A list that names a report twice, or more reports than phones were invited."""

    name = "wrong_list"
