"""Tables in Markdown, and as data frames of pandas."""

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


def markdown_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Return rows as a Markdown table; fractions have three digits."""

    def cell(value: Any) -> str:
        return f"{value:.3f}" if isinstance(value, float) else str(value)

    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(cell(row[column]) for column in columns) + " |" for row in rows]
    return "\n".join(lines)
