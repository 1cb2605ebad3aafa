"""Recognizes the errors with which gateways on Node say that they could not fetch a file.

These are the errors of the libraries that fetch, as the gateways pass them on. Only what is surely such an error
counts: a gateway that fails for another reason may have sent the message.
"""

import re

# `AxiosError` of axios, `FetchError` of node-fetch.
LIBRARIES = frozenset({"AxiosError", "FetchError"})
# The words of Baileys, and of the fetch that is part of Node.
WORDS = re.compile(r"(?:Failed to fetch stream from\b|fetch failed$)")


def download_error(name: str, words: str) -> str:
    """Return what an error says about a download; empty for any other error, of which nothing is known."""
    if name in LIBRARIES or WORDS.match(words):
        return f"{name}: {words}" if words else name
    return ""
