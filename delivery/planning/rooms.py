"""Reads how much room accounts have today, so that new recipients go where there is most (SPEC S7)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import inf

from accounts.models import Account
from accounts.profiles import PROFILES
from delivery.models import Run
from delivery.pacing import Limits
from delivery.planning import drip, new_people, workload
from delivery.planning.diary import NoRoomError
from delivery.planning.values import Allowance
from delivery.planning.workload import Share
from delivery.senders.deal import Deal, Room, Turns, turns_of

A_WEEK = 7
DAY_SECONDS = 86_400
UNLIMITED = 10**9
Wanted = tuple[Sequence[int], str]  # accounts, and the action


@dataclass(frozen=True, slots=True, kw_only=True)
class Rooms:
    """The accounts that are able to send, and their rooms: in messages, and in new people."""

    able: Collection[int]
    messages: Mapping[tuple[int, str], Room]
    people: Mapping[tuple[int, str], Room]

    def deal(self, account_ids: Sequence[int], action: str, *, parts: int) -> Deal:
        """Return how recipients of a message with `parts` are dealt to accounts."""
        ids = list(dict.fromkeys(account_ids))
        able = [pk for pk in ids if pk in self.able] or ids

        def turns(rooms: Mapping[tuple[int, str], Room], parts: int) -> Turns:
            known = [rooms.get((pk, action), Room(account_id=pk, today=0, a_day=1)) for pk in able]
            return turns_of([_targets(room, parts) for room in known])

        groups, people = turns(self.messages, parts), turns(self.for_people(parts), 1)
        return Deal(accounts=tuple(ids), able=tuple(able), people=people, groups=groups)

    def for_people(self, parts: int) -> dict[tuple[int, str], Room]:
        """Return how many new people can get a whole message, where people and messages are limited."""
        return {key: _smaller(room, _targets(self.messages[key], parts)) for key, room in self.people.items()}


def deal(account_ids: Sequence[int], action: str, *, parts: int, now: datetime) -> Deal:
    """Return how recipients are dealt to these accounts now; a few queries, and none for one account."""
    return read([(account_ids, action)], now=now).deal(account_ids, action, parts=parts)


def able_of(account_ids: Sequence[int]) -> list[int]:
    """Return the accounts that are able to send, in their order; all of them where none is."""
    rows = Account.objects.filter(pk__in=account_ids, status=Account.Status.ACTIVE, archived_at=None)
    able = set(rows.values_list("pk", flat=True)) if len(account_ids) > 1 else set()
    return [pk for pk in account_ids if pk in able] or list(account_ids)


def read(wanted: Iterable[Wanted], *, now: datetime, but: Run | None = None) -> Rooms:
    """Read the rooms of many accounts and actions at once, where there are several accounts to choose from.

    What is left of the run `but` takes up no room.
    """
    several = [(list(dict.fromkeys(ids)), action) for ids, action in wanted if len(set(ids)) > 1]
    if not several:
        return Rooms(able=(), messages={}, people={})
    known = Account.objects.defer("credentials").in_bulk({pk for ids, _ in several for pk in ids})
    able = {pk for pk, account in known.items() if _is_able(account)}
    actions: dict[int, set[str]] = {}
    for ids, action in several:
        for pk in ids if len(able.intersection(ids)) > 1 else ():
            if pk in able:
                actions.setdefault(pk, set()).add(action)
    accounts = [known[pk] for pk in sorted(actions)]
    if not accounts:
        return Rooms(able=able, messages={}, people={})
    shares = workload.shares_of(accounts, now=now, but=but)
    queues = {pk: [share for share in shares if share.account_id == pk] for pk in actions}
    left = workload.allowances(accounts, actions, queues, now=now)
    messages = {
        (pk, action): _room(known[pk], allowance, queues[pk], action=action, now=now)
        for (pk, action), allowance in left.items()
    }
    people = {
        (pk, action): _for_people(known[pk], messages[pk, action], action, allowance.limits, now=now)
        for (pk, action), allowance in left.items()
    }
    return Rooms(able=able, messages=messages, people=people)


def _is_able(account: Account) -> bool:
    return account.status == Account.Status.ACTIVE and account.archived_at is None


def _room(
    account: Account, allowance: Allowance, queue: Collection[Share], *, action: str, now: datetime
) -> Room:
    """Return the messages that an account can still send, beside what its runs have planned."""
    try:
        today = drip.diary_of(account, allowance, list(queue), action=action, now=now).room(0)
    except NoRoomError:
        today = 0
    pace, cap = _a_day(allowance.limits), allowance.cap(1)
    return Room(
        account_id=account.pk,
        today=int(min(pace if today is None else today, pace)),
        a_day=int(min(pace if cap is None else cap, pace)),
    )


def _for_people(account: Account, room: Room, action: str, limits: Limits, *, now: datetime) -> Room:
    """Return the room for people who are new to the account."""
    if account.first_contacts_until is not None and account.first_contacts_until > now:
        return replace(room, today=0)
    if not new_people.limit_people(limits) or PROFILES[account.profile].subscribers:
        return replace(room, today=UNLIMITED, a_day=UNLIMITED)
    a_day = min(limits.new_per_day or inf, (limits.new_per_week or inf) / A_WEEK)
    return Room(
        account_id=account.pk,
        today=new_people.room_today(account, action, limits, now=now),
        a_day=int(max(1, a_day)),
    )


def _targets(room: Room, parts: int) -> Room:
    return replace(room, today=room.today // max(1, parts), a_day=room.a_day // max(1, parts))


def _smaller(room: Room, other: Room) -> Room:
    return replace(room, today=min(room.today, other.today), a_day=min(room.a_day, other.a_day))


def _a_day(limits: Limits) -> float:
    """Return the most messages that the pace of an account allows in a day."""
    gap = (limits.gap_min + limits.gap_max) / 2
    return min(
        (limits.per_minute or inf) * 24 * 60,
        (limits.per_hour or inf) * 24,
        DAY_SECONDS / gap if gap else inf,
        UNLIMITED,
    )
