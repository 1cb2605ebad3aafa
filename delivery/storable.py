"""What others wrote, as PostgreSQL takes it: a service may send half a character or a NUL, and neither has a place."""


def storable(text: str, most: int) -> str:
    """As much of the text as the column holds."""
    return text.replace("\x00", "").encode(errors="replace").decode()[:most]
