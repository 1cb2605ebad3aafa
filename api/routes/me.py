"""The key itself: whose it is, and what it may do."""

from django.conf import settings
from django.http import HttpRequest
from ninja import Router

from accounts.models import Role
from accounts.roles import owners_for
from api.access import ANY, caller_of
from api.schemas.me import KeyShown, Owner
from api.scopes import Scope

router = Router(tags=["Key"])

MOST_OWNERS = 200


@router.get("", response=KeyShown, auth=ANY)
def show_key(request: HttpRequest) -> KeyShown:
    """Return the key of this request, and the people for whom it may add something. Any key may ask this."""
    caller = caller_of(request)
    owners = owners_for(caller.person, Role.WRITE)[:MOST_OWNERS]
    return KeyShown(
        name=caller.key.name,
        prefix=caller.key.prefix,
        scopes=[Scope(scope) for scope in caller.key.scopes],
        ends_at=caller.key.ends_at,
        person=Owner(id=caller.person.pk, username=caller.person.username),
        zone=caller.person.zone,
        owners=[Owner(id=owner.pk, username=owner.username) for owner in owners],
        requests_per_minute=settings.API_PER_MINUTE,
    )
