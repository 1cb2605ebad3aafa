"""The sessions of a person: each log-in in a browser is one."""

from functools import partial

from allauth.usersessions.models import UserSession
from django.db import transaction

from accounts.models import User
from activity.person_events import send_event


def sessions_of(person: User) -> list[UserSession]:
    """Return the sessions that still work, the newest first; those that ended otherwise are forgotten."""
    found: list[UserSession] = UserSession.objects.purge_and_list(person)
    return sorted(found, key=lambda session: session.created_at, reverse=True)


def end_sessions(person: User) -> int:
    """End all sessions of a person; return how many. Their open pages close."""
    found = list(UserSession.objects.filter(user=person))
    for session in found:
        key = session.session_key
        session.end()
        transaction.on_commit(partial(send_event, person.pk, "session.ended", session=key))
    return len(found)
