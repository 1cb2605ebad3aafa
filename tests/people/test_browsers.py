"""Names of browsers."""

import pytest

from people.browsers import browser_of

CHROME = "(KHTML, like Gecko) Chrome/130.0.0.0"


@pytest.mark.parametrize(
    ("user_agent", "words"),
    [
        (
            f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 {CHROME} Safari/537.36",
            "Chrome on Windows",
        ),
        (f"Mozilla/5.0 (Windows NT 10.0) {CHROME} Safari/537.36 Edg/130.0", "Edge on Windows"),
        ("Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0", "Firefox on Linux"),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Mobile Safari/604.1",
            "Safari on iPhone",
        ),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X 14) Version/18.0 Safari/605.1", "Safari on Mac"),
        (f"Mozilla/5.0 (Linux; Android 14) {CHROME} Mobile Safari/537.36", "Chrome on Android"),
        ("curl/8.5", "Unknown browser"),
        ("", "Unknown browser"),
    ],
)
def test_a_browser_is_named_with_its_system(user_agent: str, words: str) -> None:
    assert browser_of(user_agent) == words
