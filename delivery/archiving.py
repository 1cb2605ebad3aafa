"""Putting an account away, and bringing it back. What has a history is never deleted."""

from django.db import transaction
from django.utils import timezone

from accounts.models import Account, User
from accounts.roles import require_touch
from delivery import lifecycle
from delivery.lifecycle.of_accounts import locked_account
from delivery.models import RunAccount


@transaction.atomic
def archive(account: Account, *, by: User) -> Account:
    """Out of sight, and paused first if it could send; refused while runs wait for it."""
    account = locked_account(account, by)  # no run is fired from it meanwhile
    waiting = RunAccount.objects.filter(account=account, open=True).count()
    if waiting:
        runs = "1 run is" if waiting == 1 else f"{waiting} runs are"
        raise lifecycle.WrongStateError(
            f"{runs} still open on {account}: let them end, or cancel them first."
        )
    if account.status == Account.Status.ACTIVE:
        account = lifecycle.pause_account(account, by=by)
    Account.objects.filter(pk=account.pk, archived_at=None).update(archived_at=timezone.now())
    return account


def unarchive(account: Account, *, by: User) -> None:
    """Back in sight. It is paused, or as it was: a person resumes it."""
    require_touch(account, by)
    Account.objects.filter(pk=account.pk).update(archived_at=None)
