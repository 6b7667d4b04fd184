"""Policies of phones in tests that are about something else than budgets."""

from __future__ import annotations

import math
from typing import Any

from earshot_client.policy import Policy
from earshot_protocol.privacy.budgets import BUDGETS


def without_budget(**limits: Any) -> Policy:
    """Whatever a phase spends, in either unit; the other limits are as given, or as they come."""
    unlimited = {
        rule.value: math.inf for budget in BUDGETS for rule in (budget.epsilon, budget.delta)
    }
    return Policy(any_delta=True, **(unlimited | limits))
