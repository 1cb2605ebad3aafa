"""The share of accounts that a worker serves, when accounts are divided between workers."""

from dataclasses import dataclass

from django.core.exceptions import ImproperlyConfigured


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The accounts that a worker serves: every `of`-th by id."""

    index: int
    of: int

    @classmethod
    def parse(cls, text: str) -> "Share":
        index, _, of = text.partition("/")
        if not (index.isdecimal() and of.isdecimal() and 1 <= int(index) <= int(of)):
            raise ImproperlyConfigured(
                f"ACCOUNT_SHARE is {text!r}: write it as i/n, as in 2/5, with i from 1 to n."
            )
        return cls(index=int(index), of=int(of))

    def holds(self, account_id: int) -> bool:
        return account_id % self.of == self.index - 1
