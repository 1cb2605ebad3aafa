from accounts.models.account import Account, Limit
from accounts.models.importing import Import, ImportRow
from accounts.models.people import TeamMate, User
from accounts.models.recipient import ConsentChange, Recipient, Tag
from accounts.models.sync import GroupSync

__all__ = [
    "Account",
    "ConsentChange",
    "GroupSync",
    "Import",
    "ImportRow",
    "Limit",
    "Recipient",
    "Tag",
    "TeamMate",
    "User",
]
