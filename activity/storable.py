"""Text from others in a form that PostgreSQL stores: a service may send half a character or a NUL."""


def storable(text: str, most: int) -> str:
    """Return as much of the text as the column holds, without what PostgreSQL refuses."""
    if text.isascii() and "\x00" not in text:  # as nearly always
        return text[:most]
    return text.replace("\x00", "").encode(errors="replace").decode()[:most]
