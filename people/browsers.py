"""Names of browsers and systems, read from what a browser says about itself. Pure."""

# The first word that is found names it: Edge and Opera also say "Chrome", and Chrome also says "Safari".
BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser", "Samsung Internet"),
    ("Firefox", "Firefox"),
    ("FxiOS", "Firefox"),
    ("CriOS", "Chrome"),
    ("Chrome", "Chrome"),
    ("Safari", "Safari"),
)
SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Mac OS", "Mac"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)


def browser_of(user_agent: str) -> str:
    """Return "Firefox on Windows"; only one of the two where the other is not known."""
    found = [next((name for sign, name in names if sign in user_agent), "") for names in (BROWSERS, SYSTEMS)]
    return " on ".join(filter(None, found)) or "Unknown browser"
