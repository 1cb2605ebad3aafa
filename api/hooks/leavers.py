"""Stops webhooks of people who left the team: what happens at an owner is told to nobody who may not see it any more.

Every tick looks, so it does not matter by which door somebody was removed, demoted, deactivated or deleted; and each
batch of a delivery looks once more, so that nothing leaves meanwhile.
"""

from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet

from accounts.models import Role, TeamMate, User, Webhook
from activity.models import Notification
from activity.notify import tell
from api.hooks import manage


def forsaken() -> QuerySet[Webhook]:
    """Return the working webhooks whose maker may no longer change what is the owner's."""
    mates = TeamMate.objects.filter(owner=OuterRef("owner"), mate=OuterRef("made_by"), role=Role.MANAGE)
    staff = User.objects.filter(pk=OuterRef("made_by"), is_staff=True, is_active=True)
    rows = Webhook.objects.filter(switched_off_at=None, made_by__isnull=False).exclude(made_by=F("owner"))
    return rows.filter(~Exists(mates.filter(mate__is_active=True)), ~Exists(staff))


def stop_forsaken() -> int:
    """Switch these off, and tell their owners; return how many there were."""
    return sum(_stop(pk) for pk in list(forsaken().values_list("pk", flat=True)))


@transaction.atomic
def _stop(webhook_id: int) -> bool:
    rows = forsaken().select_for_update(no_key=True, of=("self",), skip_locked=True)
    webhook = rows.filter(pk=webhook_id).first()
    if webhook is None:
        return False
    maker = str(User.objects.filter(pk=webhook.made_by_id or 0).first() or "A person who was deleted")
    manage.off(webhook, f"{maker}, whose webhook it was, is no longer in the team")
    tell(
        webhook.owner_id,
        Notification.Kind.ACCOUNT,
        key=f"webhook:{webhook.pk}:left:{webhook.switched_off_at:%Y%m%d%H%M%S}",
        title="A webhook was switched off",
        body=f"{webhook.url} was the webhook of {maker}, who left your team. Switch it on again if it is yours now.",
        url="/webhooks/",
    )
    return True
