"""Administration of people, accounts and recipients: a module for each noun, on the ground of `roles`."""

from accounts.admin import accounts, imports, people, recipients

__all__ = ["accounts", "imports", "people", "recipients"]
