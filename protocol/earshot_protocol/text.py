"""Text that one side takes from the other: one bounded line, in any language.

It may end up on a screen, in a log, in a file, or in the field of a request, so it holds nothing
that ends a line, moves a cursor, hides letters or reverses their order.
"""

from __future__ import annotations

from msgspec import Meta

# Control characters (Cc), separators of lines and paragraphs, and format characters (Cf) except the
# few that belong to single scripts.
_UNSEEN = (
    "\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f"
)
# In Python, a dollar sign alone also matches before a line break at the end.
_LINE = rf"^[^{_UNSEEN}]*$(?!\n)"


def line(most: int, least: int = 0) -> Meta:
    """Constrain a string to one line of `least` to `most` characters."""
    return Meta(pattern=_LINE, min_length=least, max_length=most)


def one_line(text: str, most: int) -> str:
    """Turn any text into such a line: spaces for line breaks, question marks for what is unseen."""
    words = " ".join(text.split())
    return "".join(letter if letter.isprintable() else "?" for letter in words)[:most]
