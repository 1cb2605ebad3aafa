"""Errors of commands, in sentences for the person at the keyboard. Each error has an exit code."""

from collections.abc import Mapping
from typing import Any

import httpx

PREFIX = "urn:paceline:problem:"


class ClientError(Exception):
    """The command could not be done; the text says why and what to do."""

    code = 1

    @property
    def body(self) -> Mapping[str, Any]:
        """Return the error for programs."""
        return {"type": "client", "detail": str(self)}


class NotConfirmedError(ClientError):
    """Nothing was done, because nobody said yes."""

    code = 3


class UnclearError(ClientError):
    """No answer came: the request may or may not have been done."""

    code = 4


class ProblemError(ClientError):
    """Paceline refused the request, with its problem details (RFC 9457)."""

    def __init__(self, problem: Mapping[str, Any]) -> None:
        super().__init__(_sentences(problem))
        self.problem = problem

    @property
    def body(self) -> Mapping[str, Any]:
        return self.problem

    @property
    def name(self) -> str:
        """Return the type without its prefix, such as `wrong-state`."""
        return str(self.problem.get("type", "")).removeprefix(PREFIX)


def problem_of(response: httpx.Response) -> ClientError:
    """Return the error for an answer that is none of success."""
    if response.is_redirect:
        there = response.headers.get("location", "another address")
        return ClientError(f"The address leads to {there}. Log in again with the right one: paceline login")
    if "json" in response.headers.get("content-type", ""):
        try:
            problem = response.json()
        except ValueError:
            problem = None
        if isinstance(problem, dict):
            return ProblemError(problem)
    return ClientError(
        f"{response.url.copy_with(query=None)} answered {response.status_code}, but not as Paceline does. "
        "Check the address: paceline login"
    )


def _sentences(problem: Mapping[str, Any]) -> str:
    detail = str(problem.get("detail") or problem.get("title") or "The request was refused.")
    faults = [each for each in problem.get("errors") or () if isinstance(each, dict)]
    more = [
        f"  {each.get('field', '')}: {each.get('detail', '')}"
        for each in faults
        if str(each.get("detail", "")) not in detail
    ]
    return "\n".join([detail, *more])
