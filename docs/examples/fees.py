"""Schedules a reminder about school fees, follows it by webhook, and tags everybody who answers “paid”.

Run it with PACELINE_URL, PACELINE_KEY (scopes read, send and manage), ACCOUNT (the id of an account), and HOOK_PORT and
HOOK_URL: the port on which this program listens, and the address under which Paceline reaches it.
"""

import json
import os
import uuid
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import httpx
from standardwebhooks import Webhook, WebhookVerificationError

PARENTS = [("+60123456701", "Aisyah"), ("+60123456702", "Ben")]
EVENTS = ["run.started", "run.finished", "run.targets", "reply.received"]


class Paceline:
    """The few calls that this program needs. Each POST has a key of its own, so a repeated one does nothing twice."""

    def __init__(self, url: str, key: str) -> None:
        transport = httpx.HTTPTransport(retries=3)
        headers = {"Authorization": f"Bearer {key}"}
        self.http = httpx.Client(base_url=f"{url}/api/v1", headers=headers, transport=transport, timeout=30)

    def post(self, path: str, body: Any = None) -> Any:
        return self._answer(
            self.http.post(path, json=body or {}, headers={"Idempotency-Key": str(uuid.uuid4())})
        )

    def put(self, path: str, body: Any) -> Any:
        return self._answer(self.http.put(path, json=body))

    def _answer(self, response: httpx.Response) -> Any:
        if response.is_error:
            problem = response.json()
            raise SystemExit(f"{problem['title']}: {problem['detail']}")
        return response.json()


def schedule(paceline: Paceline, account: int) -> int:
    """Add the parents, write the reminder, and schedule it for tomorrow; return its id."""
    people = [
        {"channel": "whatsapp", "address": address, "name": name, "tags": ["Parents"]}
        for address, name in PARENTS
    ]
    saved = paceline.post("/recipients", {"recipients": people})
    ids = [result["id"] for result in saved["results"] if result["result"] != "refused"]
    reminder = int(paceline.post("/reminders", {"name": "School fees"})["id"])
    text = "Dear {{ name }}, the fees are due. Answer “paid” when you have paid."
    paceline.put(f"/reminders/{reminder}/message", {"parts": [{"text": text}]})
    paceline.put(f"/reminders/{reminder}/audience", {"accounts": [account], "add": ids})
    tomorrow = datetime.now(UTC).replace(hour=9, minute=0) + timedelta(days=1)
    paceline.put(f"/reminders/{reminder}/times", {"schedule": "once", "at": tomorrow.isoformat()})
    scheduled = paceline.post(f"/reminders/{reminder}/schedule")
    print(f"Scheduled: {scheduled['sentence']}", flush=True)
    return reminder


def listen(paceline: Paceline, port: int, secret: str, tag: int) -> None:
    """Take events until the run has finished and somebody has paid."""
    verifier, seen, state = Webhook(secret), set[str](), {"finished": False, "paid": False}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            try:
                event = verifier.verify(body, dict(self.headers))
            except WebhookVerificationError:
                self.send_error(401)
                return
            self.send_response(204)
            self.end_headers()
            name = self.headers["webhook-id"]
            if name not in seen:  # an event may come twice
                seen.add(name)
                handle(paceline, event, tag, state)

        def log_message(self, *_: object) -> None:
            return

    server = HTTPServer(("127.0.0.1", port), Handler)
    while not all(state.values()):
        server.handle_request()


def handle(paceline: Paceline, event: dict[str, Any], tag: int, state: dict[str, bool]) -> None:
    data = event["data"]
    print(json.dumps({"type": event["type"]}), flush=True)
    if event["type"] == "run.finished":
        print(data["run"]["summary"], flush=True)
        state["finished"] = True
    if event["type"] == "reply.received" and "paid" in data["reply"]["text"].lower():
        paceline.post(f"/tags/{tag}/recipients", {"add": [data["reply"]["recipient"]]})
        state["paid"] = True


def main() -> None:
    paceline = Paceline(os.environ["PACELINE_URL"], os.environ["PACELINE_KEY"])
    hook = paceline.post("/webhooks", {"url": os.environ["HOOK_URL"], "events": EVENTS})
    tag = paceline.post("/tags", {"name": "Paid"})["id"]
    schedule(paceline, int(os.environ["ACCOUNT"]))
    listen(paceline, int(os.environ["HOOK_PORT"]), hook["secret"], tag)
    print("Done.", flush=True)


if __name__ == "__main__":
    main()
