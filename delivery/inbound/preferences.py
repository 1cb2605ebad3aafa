"""Applies what people told the service about our messages: that they want no more, or want them again.

The last report counts, by the service's own time. Who wants messages again undoes only what the same preference had
stopped: a person who wrote STOP to us, or was opted out by an operator, stays opted out until they tell us.
"""

from accounts.models import Account, ConsentChange, Recipient
from accounts.recipients import consent
from activity.models import Inbound

STOPPED = "stopped messages in WhatsApp"
RESUMED = "resumed messages in WhatsApp"


def take_over(account: Account, inbound: Inbound, people: list[Recipient]) -> None:
    """Opt the people out or in, unless a later preference is known."""
    later = Inbound.objects.filter(
        account=account, kind=Inbound.Kind.CONSENT, sender=inbound.sender, at__gt=inbound.at
    )
    if later.exists():
        return
    for recipient in people:
        if inbound.state == "out":
            consent.opt_out(recipient, how=STOPPED)
        elif _stopped_there(recipient):
            consent.opt_in(recipient, how=RESUMED, by=None)


def _stopped_there(recipient: Recipient) -> bool:
    last = recipient.consent_changes.filter(move=ConsentChange.Move.OUT).order_by("-at", "-pk").first()
    return last is not None and last.how == STOPPED
