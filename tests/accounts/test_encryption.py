"""Credentials at rest: unreadable without the keys, and the keys can be changed while everything runs."""

import json
from collections.abc import Callable
from io import StringIO
from itertools import count
from pathlib import Path

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP
from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import connection
from pytest_django import Settings

from accounts.encryption import UnreadableSecretError, decrypt, encrypt, reencrypt
from accounts.management.commands import rotate_keys
from accounts.models import Account
from tests.factories import AccountFactory, OperatorFactory

SECRET = {"api_key": "a-very-secret-token", "phone_id": "4915112345678"}
OLD, NEW = Fernet.generate_key().decode(), Fernet.generate_key().decode()

UseKeys = Callable[..., None]


@pytest.fixture
def use_keys(settings: Settings) -> UseKeys:
    def use(*keys: str) -> None:
        settings.ENCRYPTION_KEYS = list(keys)

    return use


@pytest.fixture
def stored_under_the_old_key(db: None, use_keys: UseKeys) -> Account:
    use_keys(OLD)
    return AccountFactory.create(credentials=SECRET, webhook={})


def in_the_table(account: Account) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT credentials FROM accounts_account WHERE id = %s", [account.pk])
        return str(cursor.fetchone()[0])


def interrupted_at(call: int) -> Callable[[str], str]:
    """`reencrypt` with somebody who presses Ctrl-C in the middle of it."""
    calls = count(1)

    def interrupted(stored: str) -> str:
        if next(calls) == call:
            raise KeyboardInterrupt
        return reencrypt(stored)

    return interrupted


def rotate(**options: int | bool) -> str:
    output = StringIO()
    call_command("rotate_keys", stdout=output, no_color=True, **options)
    return output.getvalue()


@pytest.mark.django_db
class TestAtRest:
    def test_a_credential_comes_back_as_it_went_in(self) -> None:
        account = AccountFactory.create(credentials=SECRET)
        assert Account.objects.get(pk=account.pk).credentials == SECRET

    def test_no_word_of_it_is_in_the_table(self) -> None:
        row = in_the_table(AccountFactory.create(credentials=SECRET))
        assert row
        assert not [word for pair in SECRET.items() for word in pair if word in row]

    def test_no_word_of_it_is_in_a_dump(self) -> None:
        AccountFactory.create(credentials=SECRET)
        output = StringIO()
        call_command("dumpdata", "accounts.account", stdout=output)
        assert '"credentials": "gAAAA' in output.getvalue()
        assert not [word for pair in SECRET.items() for word in pair if word in output.getvalue()]

    def test_a_dump_can_be_loaded_again(self, tmp_path: Path) -> None:
        account = AccountFactory.create(credentials=SECRET)
        dump = tmp_path / "accounts.json"
        call_command("dumpdata", "accounts.account", output=str(dump), verbosity=0)
        Account.objects.filter(pk=account.pk).update(credentials={})
        call_command("loaddata", str(dump), verbosity=0)
        assert Account.objects.get(pk=account.pk).credentials == SECRET

    def test_the_same_credential_is_stored_differently_each_time(self) -> None:
        assert in_the_table(AccountFactory.create(credentials=SECRET)) != in_the_table(
            AccountFactory.create(credentials=SECRET)
        )

    def test_an_account_without_credentials_stores_nothing(self) -> None:
        account = AccountFactory.create(credentials={})
        assert in_the_table(account) == ""
        assert Account.objects.get(pk=account.pk).credentials == {}


class TestKeys:
    def test_what_an_older_key_stored_still_opens(self, use_keys: UseKeys) -> None:
        use_keys(OLD)
        stored = encrypt(SECRET)
        use_keys(NEW, OLD)
        assert decrypt(stored) == SECRET

    def test_the_newest_key_stores(self, use_keys: UseKeys) -> None:
        use_keys(NEW, OLD)
        stored = encrypt(SECRET)
        use_keys(NEW)
        assert decrypt(stored) == SECRET

    def test_what_no_key_opens_is_one_clear_error(self, use_keys: UseKeys) -> None:
        use_keys(OLD)
        stored = encrypt(SECRET)
        use_keys(NEW)
        with pytest.raises(UnreadableSecretError, match="No key in ENCRYPTION_KEY opens these credentials"):
            decrypt(stored)

    def test_what_was_tampered_with_does_not_open(self, use_keys: UseKeys) -> None:
        use_keys(NEW)
        stored = encrypt(SECRET)
        flipped = stored[:40] + ("A" if stored[40] != "A" else "B") + stored[41:]
        with pytest.raises(UnreadableSecretError):
            decrypt(flipped)

    def test_a_key_that_is_none_is_named(self, use_keys: UseKeys) -> None:
        use_keys("letmein")
        with pytest.raises(ImproperlyConfigured, match="ENCRYPTION_KEY is not a Fernet key"):
            encrypt(SECRET)

    def test_make_key_prints_a_key_that_works(self, use_keys: UseKeys) -> None:
        output = StringIO()
        call_command("make_key", stdout=output)
        use_keys(output.getvalue().strip())
        assert decrypt(encrypt(SECRET)) == SECRET

    def test_make_key_prints_json_for_programs(self, use_keys: UseKeys) -> None:
        output = StringIO()
        call_command("make_key", json=True, stdout=output)
        use_keys(json.loads(output.getvalue())["ENCRYPTION_KEY"])
        assert decrypt(encrypt(SECRET)) == SECRET

    def test_make_key_prints_another_one_each_time(self) -> None:
        first, second = StringIO(), StringIO()
        call_command("make_key", stdout=first)
        call_command("make_key", stdout=second)
        assert first.getvalue() != second.getvalue()


class TestRotation:
    def test_afterwards_the_old_key_can_be_dropped(
        self, stored_under_the_old_key: Account, use_keys: UseKeys
    ) -> None:
        use_keys(NEW, OLD)
        assert "1 re-encrypted, 0 already under the newest key" in rotate()
        use_keys(NEW)
        assert Account.objects.get(pk=stored_under_the_old_key.pk).credentials == SECRET

    def test_what_webhooks_are_signed_with_is_rotated_too(self, db: None, use_keys: UseKeys) -> None:
        use_keys(OLD)
        account = AccountFactory.create(credentials={})
        secret = account.webhook["secret"]
        use_keys(NEW, OLD)
        assert "1 re-encrypted" in rotate()
        use_keys(NEW)
        assert Account.objects.get(pk=account.pk).webhook["secret"] == secret

    def test_second_factors_are_rotated_too(self, db: None, use_keys: UseKeys) -> None:
        person = OperatorFactory.create()
        use_keys(OLD)
        TOTP.activate(person, "JBSWY3DPEHPK3PXP")
        codes = RecoveryCodes.activate(person).get_unused_codes()
        use_keys(NEW, OLD)
        rotate()
        use_keys(NEW)
        kept = {row.type: row.wrap() for row in Authenticator.objects.filter(user=person)}
        assert kept["recovery_codes"].get_unused_codes() == codes
        assert decrypt(kept["totp"].instance.data["secret"]) == {"secret": "JBSWY3DPEHPK3PXP"}

    def test_without_it_the_old_key_is_still_needed(
        self, stored_under_the_old_key: Account, use_keys: UseKeys
    ) -> None:
        use_keys(NEW)
        account = Account.objects.get(pk=stored_under_the_old_key.pk)
        with pytest.raises(UnreadableSecretError):
            dict(account.credentials)

    def test_a_second_time_it_changes_nothing(
        self, stored_under_the_old_key: Account, use_keys: UseKeys
    ) -> None:
        use_keys(NEW, OLD)
        rotate()
        before = in_the_table(stored_under_the_old_key)
        assert "0 re-encrypted, 1 already under the newest key" in rotate()
        assert in_the_table(stored_under_the_old_key) == before

    def test_accounts_without_credentials_stay_so(self, db: None, use_keys: UseKeys) -> None:
        account = AccountFactory.create(credentials={}, webhook={})
        use_keys(NEW, OLD)
        assert "0 re-encrypted, 0 already" in rotate()
        assert in_the_table(account) == ""

    def test_it_goes_by_batches_and_counts(self, db: None, use_keys: UseKeys) -> None:
        use_keys(OLD)
        AccountFactory.create_batch(5, credentials=SECRET, webhook={})
        use_keys(NEW, OLD)
        lines = rotate(batch=2).splitlines()
        assert [line.partition(" rows")[0] for line in lines[:-1]] == [
            "accounts.Account: 2",
            "accounts.Account: 4",
            "accounts.Account: 5",
        ]
        assert "5 re-encrypted" in lines[-1]

    def test_stopped_halfway_it_goes_on_where_it_was(
        self, db: None, use_keys: UseKeys, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        use_keys(OLD)
        AccountFactory.create_batch(5, credentials=SECRET, webhook={})
        use_keys(NEW, OLD)
        monkeypatch.setattr(rotate_keys, "reencrypt", interrupted_at(4))
        with pytest.raises(KeyboardInterrupt):
            rotate(batch=2)
        monkeypatch.undo()
        assert json.loads(rotate(batch=2, json=True)) == {"rotated": 3, "current": 2}
        use_keys(NEW)
        assert [account.credentials for account in Account.objects.all()] == [SECRET] * 5

    def test_what_it_cannot_open_is_named_and_the_rest_is_done(
        self, stored_under_the_old_key: Account, use_keys: UseKeys
    ) -> None:
        lost = stored_under_the_old_key
        use_keys(NEW)
        AccountFactory.create(credentials=SECRET, webhook={})
        newest = Fernet.generate_key().decode()
        use_keys(newest, NEW)
        with pytest.raises(CommandError, match=f"opens the credentials of account {lost.pk}.*1 re-encrypted"):
            rotate()
        use_keys(newest, OLD)
        assert Account.objects.get(pk=lost.pk).credentials == SECRET

    def test_a_batch_of_none_is_refused(self, db: None) -> None:
        with pytest.raises(CommandError, match="--batch must be at least 1"):
            rotate(batch=0)
