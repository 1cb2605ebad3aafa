"""A program with a key: the one way in which tests ask the API."""

import json
from collections.abc import Iterable
from typing import Any

from django.test import Client

from accounts.models import User
from api import keys
from api.problems import BASE, CONTENT_TYPE
from api.scopes import Scope

ROOT = "/api/v1"


class Program:
    """Asks on behalf of a person, with a key of these scopes."""

    def __init__(self, person: User, scopes: Iterable[Scope] = tuple(Scope)) -> None:
        issued = keys.issue(person, name="Test program", scopes=scopes)
        self.person, self.key, self.secret = person, issued.key, issued.secret
        self._client = Client(raise_request_exception=False)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Send one request; `headers` are written with underscores."""
        sent = {"Authorization": f"Bearer {self.secret}"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        return self._client.generic(
            method, ROOT + path, content, content_type="application/json", headers=sent
        )

    def get(self, path: str, **headers: str) -> Any:
        return self._expect(200, self.ask("GET", path, **headers))

    def post(self, path: str, body: Any = None, *, status: int = 200, **headers: str) -> Any:
        return self._expect(status, self.ask("POST", path, body, **headers))

    def put(self, path: str, body: Any = None, *, status: int = 200) -> Any:
        return self._expect(status, self.ask("PUT", path, body))

    def patch(self, path: str, body: Any = None, *, status: int = 200) -> Any:
        return self._expect(status, self.ask("PATCH", path, body))

    def delete(self, path: str, *, status: int = 204) -> Any:
        return self._expect(status, self.ask("DELETE", path))

    def _expect(self, status: int, answer: Any) -> Any:
        assert answer.status_code == status, answer.content.decode()
        return json.loads(answer.content) if answer.content else None


def problem_of(answer: Any) -> dict[str, Any]:
    """Return the problem in an answer, with its type as a bare name."""
    assert answer["Content-Type"] == CONTENT_TYPE, answer.content.decode()
    found: dict[str, Any] = json.loads(answer.content)
    assert found["status"] == answer.status_code
    return found | {"type": found["type"].removeprefix(BASE)}
