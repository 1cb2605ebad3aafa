from activity.models.inbound import Inbound
from activity.models.ledger import Attempt
from activity.models.notification import Notification, PushSubscription

__all__ = ["Attempt", "Inbound", "Notification", "PushSubscription"]
