"""Keeps the idempotency keys that were honoured, so that a message sent again is delivered once."""

from collections import Counter
from hashlib import blake2b

MAX_KEYS = 1_000_000  # about 100 MB when full; the oldest are forgotten first


class Keys:
    """A set of 64-bit fingerprints in the order of arrival. The fingerprint is also the message's id."""

    def __init__(self, most: int = MAX_KEYS) -> None:
        self._most = most
        self._seen: dict[int, None] = {}
        self._forgotten: Counter[str] = Counter()

    def remember(self, account: str, key: str) -> tuple[str, bool]:
        """Return the id that belongs to the key, and whether the key is new."""
        digest = blake2b(
            f"{self._forgotten[account]}\n{account}\n{key}".encode(errors="surrogatepass"), digest_size=8
        ).digest()
        fingerprint = int.from_bytes(digest)
        new = fingerprint not in self._seen
        if new:
            self._seen[fingerprint] = None
            if len(self._seen) > self._most:
                del self._seen[next(iter(self._seen))]
        return f"k{fingerprint:016x}", new

    def forget(self, account: str) -> None:
        """Forget the account's keys: from now on all count as new. The old entries are dropped as they age."""
        self._forgotten[account] += 1
