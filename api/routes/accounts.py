"""Accounts: their state, their limits, and pausing them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from ninja import Path, Query, Router

from accounts.models import Account, Limit, Role
from accounts.models.account import Action
from accounts.roles import visible
from api import leaving
from api.access import MANAGE, READ, STEER, person_of
from api.paging import page
from api.problems import Fault, refusal
from api.routes import handing_over
from api.routes.rows import seen, touched
from api.schemas.accounts import (
    AccountDetail,
    AccountsAsked,
    AccountShown,
    ActionLimits,
    LimitShown,
    LimitValues,
    Use,
    WorkingHours,
    WorkingHoursShown,
)
from api.schemas.base import Id, Page
from api.schemas.runs import HandOver, HandOverShown
from delivery import lifecycle
from delivery.hand_over.move import runs_of
from delivery.limits import lookup, own, usage
from delivery.limits.lookup import FIELDS
from delivery.pages import account_facts
from delivery.pages.forms import HoursForm, LimitForm
from delivery.sentences import account_state
from delivery.sentences.account_sentence import AccountNow, tell
from delivery.window import days_of

router = Router(tags=["Accounts"])


def _rows() -> QuerySet[Account]:
    return Account.objects.defer("credentials", "webhook")


@router.get("", response=Page[AccountShown], auth=READ)
def list_accounts(request: HttpRequest, asked: Query[AccountsAsked]) -> Page[AccountShown]:
    """Return the accounts, each with the sentence that says why it does or does not send now."""
    rows = visible(_rows(), person_of(request)).filter(archived_at__isnull=not asked.archived)
    for name in ("status", "channel", "owner"):
        if (value := getattr(asked, name)) is not None:
            rows = rows.filter(**{name: value})
    return page(rows, asked, shown)


@router.get("/{int:pk}", response=AccountDetail, auth=READ)
def show_account(request: HttpRequest, pk: Path[Id]) -> AccountDetail:
    """Return one account with its limits and how much of each is used."""
    return _detail(seen(_rows(), request, pk))


@router.post("/{int:pk}/pause", response=AccountShown, auth=STEER)
def pause_account(request: HttpRequest, pk: Path[Id]) -> AccountShown:
    """Pause the account and its runs: nothing more leaves from it, also not from runs with other accounts."""
    account = lifecycle.pause_account(touched(_rows(), request, pk, Role.SEND), by=person_of(request))
    return shown([account])[0]


@router.post("/{int:pk}/resume", response=AccountShown, auth=STEER)
def resume_account(request: HttpRequest, pk: Path[Id]) -> AccountShown:
    """Let the account send again, and continue the runs that it stopped."""
    account = lifecycle.start_account(touched(_rows(), request, pk, Role.SEND), by=person_of(request))
    return shown([account])[0]


@router.post("/{int:pk}/hand-over", response=HandOverShown, auth=STEER)
def hand_over_account(request: HttpRequest, pk: Path[Id], body: HandOver) -> HandOverShown:
    """Move what an account still has to send, in all its open runs, to other accounts; as with one run."""
    account = touched(_rows(), request, pk, Role.SEND)
    return handing_over.answer(runs_of(account), body, of=account.pk, by=person_of(request))


@router.put("/{int:pk}/limits/{action}", response=AccountDetail, auth=MANAGE)
def set_limits(
    request: HttpRequest,
    pk: Path[Id],
    action: Path[Action],
    body: LimitValues,  # type: ignore[valid-type]  # made from the limits that exist
) -> AccountDetail:
    """Set the account's own limits for one action. A limit that is left out or null is taken from the profile."""
    account = touched(_rows(), request, pk, Role.MANAGE)
    if action not in account_facts.actions_of(account):
        raise refusal(409, "wrong-state", f"{account} does not do this: it has no {action.label.lower()}.")
    limit = Limit.objects.filter(account=account, action=action).first()
    form = LimitForm(_typed(body), instance=limit or Limit(account=account, action=action))
    if not form.is_valid():
        faults = [Fault(field=name, detail=str(said)) for name, each in form.errors.items() for said in each]
        raise refusal(422, "invalid", " ".join(fault.detail for fault in faults), faults=faults)
    own.save_limits(account, [form.instance], by=person_of(request))
    return _detail(account)


@router.put("/{int:pk}/working-hours", response=AccountDetail, auth=MANAGE)
def set_working_hours(request: HttpRequest, pk: Path[Id], body: WorkingHours) -> AccountDetail:
    """Set the account's own working hours. The strictest of them and of a reminder's delivery hours wins."""
    account = touched(_rows(), request, pk, Role.MANAGE)
    asked = {
        "work_start_hour": body.start_hour,
        "work_end_hour": body.end_hour,
        "work_days": [1 << day for day in body.days],
    }
    form = HoursForm({name: value for name, value in asked.items() if value is not None}, instance=account)
    if not form.is_valid():
        faults = [
            Fault(field=name.removeprefix("work_"), detail=str(said))
            for name, each in form.errors.items()
            for said in each
        ]
        raise refusal(422, "invalid", " ".join(fault.detail for fault in faults), faults=faults)
    own.save_hours(form.instance, by=person_of(request))
    return _detail(account)


def _typed(body: object) -> dict[str, object]:
    values = ((name, getattr(body, name)) for name in FIELDS)
    return {name: value for name, value in values if value is not None}


def shown(accounts: Sequence[Account]) -> list[AccountShown]:
    """Return accounts as lists show them, in a few queries for all of them."""
    now = timezone.now()
    states = account_state.states(accounts, now=now)
    return [AccountShown(**_facts(account, states[account.pk], now)) for account in accounts]


def _facts(account: Account, state: AccountNow, now: datetime) -> dict[str, Any]:
    zone = ZoneInfo(account.zone)
    why = tell(state, now=now, zone=zone)
    return {
        "id": account.pk,
        "owner": account.owner_id,
        **{name: getattr(account, name) for name in ("name", "channel", "transport", "profile", "zone")},
        "status": account.status,
        "status_reason": account.status_reason,
        "waiting_for": leaving.waiting_for(state),
        "waiting_until": why.at if not why.counts_up else None,
        "sentence": why.text(now, zone),
        "created_at": account.created_at,
        "archived_at": account.archived_at,
    }


def _detail(account: Account) -> AccountDetail:
    now = timezone.now()
    state = account_state.states([account], now=now)[account.pk]
    hours = WorkingHoursShown(
        start_hour=account.work_start_hour,
        end_hour=account.work_end_hour,
        days=sorted(days_of(account.work_days)),
    )
    return AccountDetail(
        **_facts(account, state, now),
        working_hours=hours,
        use=_use(account, now),
        limits=_limits(account),
    )


def _use(account: Account, now: datetime) -> list[Use]:
    which = [(account, action) for action in account_facts.actions_of(account)]
    limits = lookup.limits_for(which)
    used = usage.used_now(which, limits, now=now) if which else {}
    return [
        Use(
            action=Action(action),
            span=span,
            used=getattr(used[account.pk, action], span),
            limit=getattr(limits[account.pk, action], f"per_{span}"),
        )
        for _, action in which
        for span in ("minute", "hour", "day")
    ]


def _limits(account: Account) -> list[ActionLimits]:
    rows = lookup.limits_of([account])
    found = []
    for action in account_facts.actions_of(account):
        mine = rows.get((account.pk, action))
        merged = lookup.merged(account, action, mine)
        holds = {
            name: LimitShown(value=value, source=source.value)
            for name, source in merged.sources.items()
            if (value := getattr(merged.limits, name, None)) is not None
        }
        own_values = {name: value for name in FIELDS if (value := getattr(mine, name, None)) is not None}
        found.append(ActionLimits(action=Action(action), holds=holds, own=own_values))
    return found
