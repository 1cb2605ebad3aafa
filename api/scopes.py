"""The scopes of keys: what a key may do. A key has one or more scopes, and each route needs exactly one."""

from collections.abc import Mapping

from django.db import models


class Scope(models.TextChoices):
    """A part of the API. No scope includes another one."""

    READ = "read", "Read"
    SEND = "send", "Send"
    STEER = "steer", "Steer"
    MANAGE = "manage", "Manage"


MEANINGS: Mapping[str, str] = {
    Scope.READ: "See accounts, recipients, reminders, runs, results and replies.",
    Scope.SEND: "Send messages, schedule reminders and start them.",
    Scope.STEER: "Pause, resume and cancel runs and accounts, retry failed messages, decide unconfirmed ones.",
    Scope.MANAGE: "Add and change recipients, tags, drafts, limits and webhooks.",
}
