"""Text from the other side: one bounded line, in any language.

It may end up on a screen, in a log, in a file, or in the field of a request, so it holds nothing
that ends a line, moves a cursor, hides letters or reverses their order.
"""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Meta

from earshot_protocol.errors import InvalidInputError

# Control characters (Cc), separators of lines and paragraphs, and format characters (Cf) except the
# few that belong to single scripts.
_UNSEEN = (
    "\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f"
)
_UNSEEN_ENDS = re.compile(rf"\A[\s{_UNSEEN}]+|[\s{_UNSEEN}]+\Z")
# In Python, a dollar sign alone also matches before a line break at the end.
_LINE = rf"^[^{_UNSEEN}]*$(?!\n)"


LARGEST_TEXT_FILE = 2**20
"""Bytes of the largest file that people write for us."""


def line(most: int, least: int = 0) -> Meta:
    """Constrain a string to one line of `least` to `most` characters."""
    return Meta(pattern=_LINE, min_length=least, max_length=most)


def bare(text: str) -> str:
    """Strip white space and invisible characters, which editors add, from both ends of a text."""
    return _UNSEEN_ENDS.sub("", text)


def decoded(content: bytes, named: object) -> str:
    """Decode a file that people write: UTF-8, with or without a byte order mark.

    Args:
        content: Content of the file.
        named: Name of the file, for the error.

    Raises:
        InvalidInputError: It is in another encoding; the error says where.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        raise InvalidInputError(
            f"{named}, line {number}: is not UTF-8 (byte {content[error.start]:#04x}); save the "
            "file as UTF-8"
        ) from None


def text_of(file: Path, wanted: str, named: object = None) -> str:
    """Read a file that people write, of at most `LARGEST_TEXT_FILE` bytes.

    Args:
        file: File to read.
        wanted: What to name instead where it cannot be read, such as "a CSV of holidays".
        named: Name of the file, for errors; None for its path.

    Raises:
        InvalidInputError: It cannot be read, is larger, or is not UTF-8; the error says what would
            be right.
    """
    named = file if named is None else named
    try:
        with file.open("rb") as opened:
            content = opened.read(LARGEST_TEXT_FILE + 1)
    except OSError as error:
        raise InvalidInputError(
            f"{named}: cannot be read ({error.strerror}); name {wanted}"
        ) from error
    if len(content) > LARGEST_TEXT_FILE:
        raise InvalidInputError(f"{named}: at most {LARGEST_TEXT_FILE} bytes are read")
    return decoded(content, named)


def one_line(text: str, most: int) -> str:
    """Turn text into one line: spaces replace line breaks, question marks unprintable letters."""
    words = " ".join(text.split())
    return "".join(letter if letter.isprintable() else "?" for letter in words)[:most]
