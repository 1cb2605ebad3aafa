"""Pages stay up while services hang: a real Daphne, a gateway that never answers, many checks at once."""

import http.client
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import islice
from urllib.parse import urlencode

import pytest
from django.conf import settings

from accounts.models import Account, User
from tests.browser.conftest import session_of
from tests.browser.site import Site
from tests.factories import AccountFactory, OperatorFactory
from tests.silent_server import SilentServer

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("hanging")]

CSRF = "a" * 32
ORDINARY = ("/", "/accounts/", "/reminders/", "/recipients/", "/activity/", "/notifications/")
LONG = 120.0  # seconds that only a broken test waits
UNCAPPED = {"OUTWARD_CALLS": "500", "OUTWARD_CALLS_PER_PERSON": "400", "ANSWER_TIMEOUT_SECONDS": "120"}
CAPPED = {"OUTWARD_CALLS": "6", "OUTWARD_CALLS_PER_PERSON": "4", "ANSWER_TIMEOUT_SECONDS": "120"}


@dataclass(frozen=True, slots=True)
class Visitor:
    """A logged-in person, with a connection for every request."""

    port: int
    session: str

    def get(self, path: str) -> http.client.HTTPResponse:
        return self._ask("GET", path)

    def post(self, path: str, **values: str) -> http.client.HTTPResponse:
        return self._ask("POST", path, urlencode({"csrfmiddlewaretoken": CSRF, **values}))

    def _ask(self, method: str, path: str, body: str | None = None) -> http.client.HTTPResponse:
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LONG)
        cookies = f"{settings.SESSION_COOKIE_NAME}={self.session}; csrftoken={CSRF}"
        headers = {"Cookie": cookies, "Content-Type": "application/x-www-form-urlencoded"}
        try:
            line.request(method, path, body, headers)
            answer = line.getresponse()
            answer.read()
            return answer
        finally:
            line.close()


@pytest.fixture
def gateway() -> Iterator[SilentServer]:
    with SilentServer() as server:
        yield server


def hanging_account(owner: User, gateway: SilentServer) -> Account:
    credentials = {"base_url": gateway.url, "account": f"of-{owner.pk}", "token": "t"}
    return AccountFactory.create(owner=owner, transport="sandbox", credentials=credentials)


@pytest.mark.parametrize("checks", [30, 110])
def test_every_page_opens_while_all_checks_hang(owner: User, gateway: SilentServer, checks: int) -> None:
    account = hanging_account(owner, gateway)
    with Site(**UNCAPPED, DATABASE_POOL="6") as site, ThreadPoolExecutor(checks) as crowd:
        visitor = Visitor(site.port, session_of(owner))
        asked: list[Future[http.client.HTTPResponse]] = [
            crowd.submit(visitor.post, f"/accounts/{account.pk}/check/") for _ in range(checks)
        ]
        try:
            assert gateway.wait_for(checks, seconds=LONG)
            opened = [visitor.get(page).status for page in ORDINARY * 2]
            assert gateway.held == checks  # none of them had ended meanwhile
            assert not any(check.done() for check in asked)
        finally:
            gateway.let_go()
        assert opened == [200] * len(opened)
        assert {check.result(LONG).status for check in asked} == {302}


def test_one_person_gets_a_few_calls_and_leaves_the_rest_to_others(
    owner: User, gateway: SilentServer
) -> None:
    other = OperatorFactory.create()
    account, others = hanging_account(owner, gateway), hanging_account(other, gateway)
    with Site(**CAPPED) as site, ThreadPoolExecutor(40) as crowd:
        visitor, neighbour = (Visitor(site.port, session_of(user)) for user in (owner, other))
        asked = [crowd.submit(visitor.post, f"/accounts/{account.pk}/check/") for _ in range(30)]
        assert gateway.wait_for(4, seconds=LONG)
        refused = [check.result() for check in islice(as_completed(asked, LONG), 26)]
        assert gateway.held == 4
        assert {answer.status for answer in refused} == {429}
        assert all(answer.headers["Retry-After"] == "10" for answer in refused)

        theirs = [crowd.submit(neighbour.post, f"/accounts/{others.pk}/check/") for _ in range(2)]
        assert gateway.wait_for(6, seconds=LONG)
        full = neighbour.post(f"/accounts/{others.pk}/check/")
        assert (full.status, full.headers["Retry-After"]) == (503, "10")
        gateway.let_go()
        assert [check.result(LONG).status for check in [*asked, *theirs]].count(302) == 6
