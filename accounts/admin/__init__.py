"""Administration of people, accounts and recipients: one module for each noun, built on `accounts/admin/roles.py`."""

from accounts.admin import accounts, imports, people, recipients, sending

__all__ = ["accounts", "imports", "people", "recipients", "sending"]
