"""Asks the public API, and tries again where that is safe.

Reading and PUT are safe to repeat. A POST that changes something carries an Idempotency-Key, and its name outlives this
program (`unanswered.py`): whatever happens on the way, the work is done once.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self

import httpx

from client.errors import ClientError, ProblemError, UnclearError, problem_of
from client.login import Login
from client.printing import complain
from client.unanswered import Name, name_for

TRIES = 6
PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)
LONGEST_PAUSE = 60.0
TIMEOUT = httpx.Timeout(60.0, connect=10.0)
AGAIN_LATER = frozenset({429, 502, 503, 504})
SETTLED = frozenset({200, 201, 202, 204, 404, 409, 413, 422})  # answers that Paceline keeps for a name
NEVER_LEFT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class Paceline:
    """The API of one installation, asked with one key."""

    def __init__(self, login: Login, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self.login, self._sleep = login, sleep
        self._http = httpx.Client(
            base_url=f"{login.url}/api/v1",
            headers={"Authorization": f"Bearer {login.key}", "User-Agent": "paceline-client"},
            timeout=TIMEOUT,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def get(self, path: str, **asked: Any) -> Any:
        """Return an answer; `asked` are the parameters, without those that are None."""
        params = {name: value for name, value in asked.items() if value is not None}
        return self._answer("GET", path, params=params)

    def rows(self, path: str, *, most: int, **asked: Any) -> list[Any]:
        """Return up to `most` rows of a list, over as many pages as needed."""
        return list(self._rows(path, most, asked))

    def put(self, path: str, body: Any) -> Any:
        return self._answer("PUT", path, body=body)

    def look(self, path: str, body: Any) -> Any:
        """Post something that changes nothing, as a dry run."""
        return self._answer("POST", path, body=body)

    def post(self, path: str, body: Any = None) -> Any:
        """Post something that is to be done once; the same request after a lost answer does nothing twice."""
        return self._answer("POST", path, body={} if body is None else body, once=True)

    def _rows(self, path: str, most: int, asked: Mapping[str, Any]) -> Iterator[Any]:
        cursor, left = None, most
        while left > 0:
            page = self.get(path, **asked, limit=min(left, 200), cursor=cursor)
            yield from page["items"]
            left -= len(page["items"])
            cursor = page["next_cursor"]
            if cursor is None:
                return

    def _answer(
        self, method: str, path: str, *, body: Any = None, params: Any = None, once: bool = False
    ) -> Any:
        name = self._name(path, body) if once else None
        headers = {"Idempotency-Key": name.text} if name else {}
        request = self._http.build_request(method, path, json=body, params=params, headers=headers)
        response, unclear = self._tried(request, name)
        if name and (not unclear or _settles(response)):
            name.settle()
        if not response.is_success:
            raise problem_of(response)
        return response.json() if response.content else None

    def _name(self, path: str, body: Any) -> Name:
        digest = hashlib.sha256(self.login.key.encode()).hexdigest()  # names belong to a key
        name = name_for(self.login.url, digest, path, json.dumps(body, sort_keys=True))
        if name.again:
            complain("An earlier try had no answer: asking for its result.")
        return name

    def _tried(self, request: httpx.Request, name: Name | None) -> tuple[httpx.Response, bool]:
        """Return the answer, and whether an earlier try may have been done; raise where no answer comes."""
        unclear = name is not None and name.again
        for number in range(TRIES):
            try:
                response = self._http.send(request)
            except NEVER_LEFT as error:
                failed: httpx.TransportError = error
                wait = 0.0
            except httpx.TransportError as error:
                failed, unclear, wait = error, True, 0.0
            else:
                later = response.status_code in AGAIN_LATER or _goes_on(response)
                if not later or number == TRIES - 1:
                    return response, unclear or response.status_code >= 500
                unclear = unclear or response.status_code >= 500
                wait = _asked_wait(response)
            if number < TRIES - 1:
                self._sleep(min(LONGEST_PAUSE, max(wait, PAUSES[number])))
        raise self._gave_up(failed, name, unclear=unclear)

    def _gave_up(self, failed: httpx.TransportError, name: Name | None, *, unclear: bool) -> ClientError:
        why = f"{self.login.url} did not answer ({type(failed).__name__}: {failed})."
        if name is None or not unclear:
            if name is not None:
                name.settle()
            return ClientError(f"{why} Nothing was done. Check the address and the network.")
        return UnclearError(
            f"{why} It may have been done or not. Run the same command again within a day: it asks for the result, "
            "and does nothing twice."
        )


def _goes_on(response: httpx.Response) -> bool:
    """Return whether the first of two equal requests is still being answered."""
    if response.status_code != 409:
        return False
    found = problem_of(response)
    return isinstance(found, ProblemError) and found.name == "in-progress"


def _settles(response: httpx.Response) -> bool:
    return response.status_code in SETTLED and not _goes_on(response)


def _asked_wait(response: httpx.Response) -> float:
    try:
        return float(response.headers.get("Retry-After", ""))
    except ValueError:
        return 0.0
