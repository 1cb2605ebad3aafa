"""Changes when a second person is needed. Stricter holds at once; looser is a request itself (docs/decisions/0043)."""

import hashlib
import json
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import transaction

from accounts.approvals import rules
from accounts.approvals.requests import Wanted, ask, others_of
from accounts.models import Account, Approval, ApprovalNumber, Role, User
from accounts.roles import owners_for, require_touch
from audit.record import record

NOBODY_ELSE = "Nobody else could approve then. First invite a team member with the role Send."


class StrictnessError(ValueError):
    """The number or the mark cannot be set like this. The text says why, and what to do."""


def own_number(owner: User) -> int | None:
    return ApprovalNumber.objects.filter(owner=owner).values_list("above", flat=True).first()


@transaction.atomic
def set_number(owner: User, above: int | None, *, by: User) -> Approval | None:
    """Set the number of an owner; return the request where a looser one waits for a second person."""
    _lock(owner, by)
    before = own_number(owner)
    if above == before:
        return None
    if above is not None and settings.APPROVAL_ABOVE and above > settings.APPROVAL_ABOVE:
        raise StrictnessError(
            f"This installation asks above {settings.APPROVAL_ABOVE:,} recipients. Choose that or fewer."
        )
    if rules.looser(before, above):
        words = f"above {above:,} recipients" if above else "no number of the owner"
        return _ask_to_loosen(owner, {"above": above}, title=f"Ask for approval less often: {words}", by=by)
    _refuse_lock_out(owner, by)
    _save_number(owner, above, by=by)
    return None


@transaction.atomic
def mark(account: Account, *, by: User) -> None:
    """Let everything that an account sends need approval from now on."""
    require_touch(account, by, Role.MANAGE)
    _lock(account.owner, by)
    _refuse_lock_out(account.owner, by)
    _save_mark(account, needs=True, by=by)


@transaction.atomic
def ask_to_lift(account: Account, *, by: User) -> Approval:
    """Ask for an account to send without approval again."""
    require_touch(account, by, Role.MANAGE)
    _lock(account.owner, by)
    title = f"Let {account} send without approval"
    return _ask_to_loosen(account.owner, {"account": account.pk}, title=title, by=by, account=account)


def apply(approval: Approval, *, by: User) -> None:
    """Do what was approved: set the looser number, or lift the mark."""
    if approval.account_id is not None:
        _save_mark(Account.objects.get(pk=approval.account_id), needs=False, by=by)
    else:
        _save_number(approval.owner, approval.said.get("above"), by=by)


def _save_number(owner: User, above: int | None, *, by: User) -> None:
    before = own_number(owner)
    if above is None:
        ApprovalNumber.objects.filter(owner=owner).delete()
    else:
        ApprovalNumber.objects.update_or_create(owner=owner, defaults={"above": above})
    record("approval.number", owner, by=by, before={"above": before}, after={"above": above})


def _save_mark(account: Account, *, needs: bool, by: User) -> None:
    if Account.objects.filter(pk=account.pk).exclude(needs_approval=needs).update(needs_approval=needs):
        record(
            "account.approval",
            account,
            by=by,
            before={"needs_approval": not needs},
            after={"needs_approval": needs},
        )


def _ask_to_loosen(
    owner: User, said: dict[str, Any], *, title: str, by: User, account: Account | None = None
) -> Approval:
    content = hashlib.sha256(json.dumps(said).encode()).hexdigest()[:32]
    return ask(
        Wanted(
            owner_id=owner.pk,
            kind=Approval.Kind.LOOSEN,
            title=title,
            why="Nobody makes this less strict alone.",
            content=content,
            said=said,
            account_id=account.pk if account is not None else None,
        ),
        by=by,
    )


def _refuse_lock_out(owner: User, by: User) -> None:
    if not others_of(owner.pk, but=[by.pk]):
        raise StrictnessError(NOBODY_ELSE)


def _lock(owner: User, by: User) -> None:
    User.objects.select_for_update(no_key=True).get(pk=owner.pk)
    if not owners_for(by, Role.MANAGE).filter(pk=owner.pk).exists():
        raise PermissionDenied(f"You may not change this for {owner}. Ask them for the role Manage.")
