from activity.models.account_day import AccountDay
from activity.models.inbound import Inbound
from activity.models.ledger import Attempt
from activity.models.notification import Notification, NotificationOutbox, PushSubscription

__all__ = ["AccountDay", "Attempt", "Inbound", "Notification", "NotificationOutbox", "PushSubscription"]
