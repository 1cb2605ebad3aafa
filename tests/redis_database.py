"""A numbered database of the Redis server for each test process, so that none flushes another's."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

# The first one is the program's; a Redis server has sixteen unless it is told otherwise.
DATABASES = range(1, 16)


@contextmanager
def free_database(locks: Path) -> Iterator[int]:
    """The number of a database that no other process of this checkout holds.

    A lock on a file ends with its process, however that ends, so nothing stale is left to clean up.
    """
    locks.mkdir(parents=True, exist_ok=True)
    for number in DATABASES:
        with (locks / f"redis-{number}.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield number
            return
    raise RuntimeError(f"All {len(DATABASES)} Redis databases for tests are taken: run fewer tests at once.")


def with_database(url: str, number: int) -> str:
    """Return the address of another database on the same server; a query parameter goes before the path."""
    address, _, query = url.partition("?")
    parameters = {name: value for name, value in parse_qsl(query) if name != "db"}
    if not address.startswith("unix://"):
        parts = urlsplit(address)
        return f"{parts.scheme}://{parts.netloc}/{number}" + (
            f"?{urlencode(parameters)}" if parameters else ""
        )
    return f"{address}?{urlencode({**parameters, 'db': number})}"
