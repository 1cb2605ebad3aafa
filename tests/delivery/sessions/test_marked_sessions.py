"""The mark of an account stays with its session: a new account with the same one needs approval, too."""

import pytest

from accounts.models import Account, User
from delivery.sessions import one_account
from tests.factories import AccountFactory

pytestmark = pytest.mark.django_db

SESSION = {"base_url": "https://waha.example.com", "session": "shop", "api_key": "k"}


@pytest.mark.parametrize("marked", [True, False])
def test_a_new_account_with_the_session_of_a_marked_one_is_marked(owner: User, marked: bool) -> None:
    key = one_account.session_key("waha", SESSION)
    assert key
    AccountFactory.create(
        owner=owner, transport="waha", archived=True, session_key=key, needs_approval=marked
    )
    new = AccountFactory.create(owner=owner, transport="waha")
    new.save(update_fields=one_account.enter(new, SESSION))
    assert Account.objects.get(pk=new.pk).needs_approval == marked
