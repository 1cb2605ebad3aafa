from accounts.models.account import Account, Limit
from accounts.models.approval import Approval, ApprovalNumber
from accounts.models.contact import Contact
from accounts.models.health import HealthChange
from accounts.models.importing import Import, ImportRow
from accounts.models.own_address import OwnAddress, TestMessage
from accounts.models.own_limits import OwnLimits
from accounts.models.people import Role, TeamMate, User
from accounts.models.recipient import ConsentChange, Recipient, Tag
from accounts.models.sender_domain import SenderDomain
from accounts.models.sending import SendingStop
from accounts.models.service import AddressAlias, RefusedReports
from accounts.models.sync import GroupSync
from accounts.models.webhook import Delivery, ResultFeed, Webhook

__all__ = [
    "Account",
    "AddressAlias",
    "Approval",
    "ApprovalNumber",
    "ConsentChange",
    "Contact",
    "Delivery",
    "GroupSync",
    "HealthChange",
    "Import",
    "ImportRow",
    "Limit",
    "OwnAddress",
    "OwnLimits",
    "Recipient",
    "RefusedReports",
    "ResultFeed",
    "Role",
    "SenderDomain",
    "SendingStop",
    "Tag",
    "TeamMate",
    "TestMessage",
    "User",
    "Webhook",
]
