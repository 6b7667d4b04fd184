"""Rows as data frames of pandas, which is an extra."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from earshot_protocol.distribution import MissingExtraError, unusable

if TYPE_CHECKING:
    from pandas import DataFrame


def data_frame(rows: Sequence[Mapping[str, Any]]) -> DataFrame:
    """Return rows as a data frame, one column per name.

    Raises:
        MissingExtraError: The package pandas is not installed.
    """
    try:
        from pandas import DataFrame
    except ImportError as error:
        raise MissingExtraError(
            unusable("data frames", "pandas", "pandas", "tables", error)
        ) from error
    return DataFrame.from_records([dict(row) for row in rows])
