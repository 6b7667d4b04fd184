"""Pages that hold phones, and their origins, which an operator names one by one."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from earshot_protocol.connecting import is_this_machine
from earshot_protocol.errors import InvalidInputError

HERE = "here"
"""Word that stands for the page which the phones' own server serves, in the place of a URL."""
HERE_PATH = "/phone/"
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[1-9][0-9]{0,4})?")
_LARGEST_PAGE = 256
_USUAL_PORTS = {"http": 80, "https": 443}


def read_origin(text: str) -> str:
    """Return an origin as browsers write it: scheme, host, and a port that is not the usual one.

    An app that shows its own files has a scheme of its own, such as `capacitor://localhost`.

    Raises:
        InvalidInputError: The text is not the origin of pages that may be trusted with a phone.
    """
    refused = f"{text[:200]!r} is not an origin of pages"
    scheme = text.partition("://")[0]
    if "*" in text or text == "null":
        raise InvalidInputError(f"{refused}: name each one, as in https://phone.example.org")
    if not _ORIGIN.fullmatch(text):
        raise InvalidInputError(
            f"{refused}: give its scheme, its host and perhaps a port, in lower case and without a "
            "path or a slash at the end, as in https://phone.example.org"
        )
    parts = urlsplit(text)
    try:
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise InvalidInputError(f"{refused}: {error}") from None
    if port is not None and port == _USUAL_PORTS.get(scheme):
        raise InvalidInputError(f"{refused}: browsers leave :{port} out of {scheme}; do so, too")
    if scheme == "http" and not is_this_machine(host):
        raise InvalidInputError(
            f"{refused}: anybody on the way could change a page that comes over http; use https"
        )
    if scheme in ("file", "data", "blob", "javascript", "about"):
        raise InvalidInputError(f"{refused}: pages of {scheme}: have none")
    return text


def read_page(text: str) -> str:
    """Return the URL of a page that holds a phone.

    Raises:
        InvalidInputError: The text is not such a URL.
    """
    try:
        parts = urlsplit(text)
    except ValueError as error:
        raise InvalidInputError(f"{text[:200]!r} is not a URL: {error}") from None
    read_origin(f"{parts.scheme}://{parts.netloc}")
    wrong = [letter for letter in text if not "!" <= letter <= "~"]
    if parts.query or parts.fragment or wrong or "#" in text or len(text) > _LARGEST_PAGE:
        raise InvalidInputError(
            f"{text[:200]!r} is not the address of a page: give it without a query and a fragment, "
            f"in at most {_LARGEST_PAGE} characters, as in https://phone.example.org/"
        )
    return text


def page_at(given: str, server: str) -> str:
    """Return the URL of a page that an operator has named by its URL, or as `here`.

    Args:
        given: URL, or `HERE` for the page that the server serves itself.
        server: URL of the server as phones reach it.

    Raises:
        InvalidInputError: It is neither.
    """
    return read_page(server.removesuffix("/") + HERE_PATH if given == HERE else given)


def origin_of(page: str) -> str:
    """Return the origin of a page."""
    parts = urlsplit(page)
    return f"{parts.scheme}://{parts.netloc}"
