"""Archives accounts and brings them back. An account with a history is never deleted."""

from django.db import IntegrityError, transaction
from django.utils import timezone

from accounts.models import Account, Role, User
from accounts.roles import require_touch
from audit.record import record
from delivery import lifecycle
from delivery.lifecycle.accounts import locked_account
from delivery.models import RunAccount


@transaction.atomic
def archive(account: Account, *, by: User) -> Account:
    """Archive the account, and pause it first if it could send. Refuse while open runs need it."""
    account = locked_account(account, by, Role.MANAGE)  # so that no run is fired from it meanwhile
    waiting = RunAccount.objects.filter(account=account, open=True).count()
    if waiting:
        runs = "1 run is" if waiting == 1 else f"{waiting} runs are"
        raise lifecycle.WrongStateError(
            f"{runs} still open on {account}. Wait until they end, or cancel them first."
        )
    if account.status == Account.Status.ACTIVE:
        account = lifecycle.pause_account(account, by=by)
    Account.objects.filter(pk=account.pk, archived_at=None).update(archived_at=timezone.now())
    record("account.archived", account, by=by)
    return account


def unarchive(account: Account, *, by: User) -> None:
    """Bring an archived account back, paused or as it was: a person resumes it.

    Refuse where another account uses its session now.
    """
    require_touch(account, by, Role.MANAGE)
    try:
        with transaction.atomic():
            Account.objects.filter(pk=account.pk).update(archived_at=None)
            record("account.unarchived", account, by=by)
    except IntegrityError as error:
        raise lifecycle.WrongStateError(
            f"Another account uses the session of {account}. Give that account another session first."
        ) from error
