"""Pages that hold phones, and their origins, which an operator configures one by one."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from earshot_protocol.connecting import is_this_machine
from earshot_protocol.errors import InvalidInputError

HERE = "here"
"""Value for the page that the server itself serves, instead of a URL."""
HERE_PATH = "/phone/"
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[1-9][0-9]{0,4})?")
_LARGEST_PAGE = 256
_USUAL_PORTS = {"http": 80, "https": 443}


def read_origin(text: str) -> str:
    """Check an origin as browsers write it: scheme, host, and a port that is not the default.

    An app that shows its own files has its own scheme, such as `capacitor://localhost`.

    Raises:
        InvalidInputError: The text is not an origin, or pages from it cannot be trusted.
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
        raise InvalidInputError(f"{refused}: leave :{port} out, the default port of {scheme}")
    if scheme == "http" and not is_this_machine(host):
        raise InvalidInputError(
            f"{refused}: others could change a page that is loaded over http; use https"
        )
    if scheme in ("file", "data", "blob", "javascript", "about"):
        raise InvalidInputError(f"{refused}: {scheme}: pages have no origin")
    return text


def read_page(text: str) -> str:
    """Check the URL of a page that holds a phone.

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
    """Return the URL of a page that an operator has given as a URL or as `here`.

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
