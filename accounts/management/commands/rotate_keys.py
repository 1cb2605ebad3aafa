"""Stores every secret under the newest key of ENCRYPTION_KEY."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from allauth.mfa.models import Authenticator
from cryptography.fernet import Fernet, InvalidToken
from django.apps import apps
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import models, transaction
from django.db.models import TextField, Value
from django.db.models.functions import Cast

from accounts.encryption import EncryptedJSONField, UnreadableSecretError, reencrypt
from audit.record import record


@dataclass(slots=True, kw_only=True)
class Tally:
    """The number of secrets by result so far."""

    rotated: int = 0
    current: int = 0
    unreadable: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.rotated} re-encrypted, {self.current} already under the newest key"


class Command(BaseCommand):
    """1. Take the next rows, by id, and lock them.
    2. Leave those that the newest key decrypts; re-encrypt those that an older key decrypts; note the rest.
    3. Commit, report, continue. Committed rows are done: a stopped command continues there when it is run again.
    """

    help = "Re-encrypt every secret under the first key of ENCRYPTION_KEY, so that the others can be dropped."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--batch", type=int, default=200, help="rows per transaction (%(default)s)")
        parser.add_argument("--json", action="store_true", help="Print JSON, for programs.")

    def handle(self, *_: Any, batch: int, **options: Any) -> None:
        if batch < 1:
            raise CommandError("--batch must be at least 1.")
        tally = Tally()
        for model, column in encrypted_columns():
            for done in rotate(model, column, batch=batch, tally=tally):
                if not options["json"]:
                    self.stdout.write(f"{model._meta.label}: {done} rows seen, {tally}.")
        rotate_second_factors(tally)
        if tally.unreadable:
            raise CommandError(
                f"No key in ENCRYPTION_KEY opens {', '.join(tally.unreadable)}. Add the key that they were "
                f"stored with and run this again, or enter them anew. The others are done: {tally}."
            )
        record("keys.rotated", after={"rotated": tally.rotated})
        facts = {"rotated": tally.rotated, "current": tally.current}
        done_words = self.style.SUCCESS(f"Done: {tally}. Older keys can be dropped now.")
        self.stdout.write(json.dumps(facts) if options["json"] else done_words)


def encrypted_columns() -> Iterator[tuple[type[models.Model], str]]:
    for model in apps.get_models():
        for column in model._meta.local_fields:
            if isinstance(column, EncryptedJSONField):
                yield model, column.name


def rotate_second_factors(tally: Tally) -> None:
    """Re-encrypt the secrets of apps and recovery codes, each of which is one value of a row's JSON."""
    for pk in list(Authenticator.objects.order_by("pk").values_list("pk", flat=True)):
        with transaction.atomic():
            row = Authenticator.objects.select_for_update().filter(pk=pk).first()
            for name in {"secret", "seed"} & set(row.data if row else ()):
                _rotate_value(row, name, tally)


def _rotate_value(row: Authenticator, name: str, tally: Tally) -> None:
    if _under_newest_key(row.data[name]):
        tally.current += 1
        return
    try:
        row.data[name] = reencrypt(row.data[name])
    except UnreadableSecretError:
        tally.unreadable.append(f"the second factor {row.pk}")
        return
    row.save(update_fields=["data"])
    tally.rotated += 1


def rotate(model: type[models.Model], column: str, *, batch: int, tally: Tally) -> Iterator[int]:
    """Re-encrypt one column batch by batch; yield the number of rows seen after each."""
    seen, last = 0, 0
    while True:
        with transaction.atomic():
            rows = _stored(model, column, after=last, size=batch)
            for pk, stored in rows:
                _rotate_one(model, pk, column, stored, tally)
        if not rows:
            return
        seen, last = seen + len(rows), rows[-1][0]
        yield seen


def _stored(model: type[models.Model], column: str, *, after: int, size: int) -> list[tuple[int, str]]:
    """Return the next rows that have a secret, still encrypted: the cast stops the field from decrypting it."""
    secrets = model._default_manager.annotate(stored=Cast(column, TextField())).exclude(stored="")
    locked = secrets.select_for_update(of=("self",), no_key=True).filter(pk__gt=after).order_by("pk")
    return list(locked.values_list("pk", "stored")[:size])


def _rotate_one(model: type[models.Model], pk: int, column: str, stored: str, tally: Tally) -> None:
    if _under_newest_key(stored):
        tally.current += 1
        return
    try:
        renewed = reencrypt(stored)
    except UnreadableSecretError:
        tally.unreadable.append(f"the {column} of {model._meta.verbose_name} {pk}")
        return
    # As plain text: the field would encrypt the value once more.
    model._default_manager.filter(pk=pk).update(**{column: Value(renewed, output_field=TextField())})
    tally.rotated += 1


def _under_newest_key(stored: str) -> bool:
    try:
        Fernet(settings.ENCRYPTION_KEYS[0].strip()).decrypt(stored.encode())
    except InvalidToken:
        return False
    return True
