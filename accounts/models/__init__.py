from accounts.models.account import Account, Limit
from accounts.models.people import TeamMate, User
from accounts.models.recipient import ConsentChange, Recipient, Tag

__all__ = ["Account", "ConsentChange", "Limit", "Recipient", "Tag", "TeamMate", "User"]
