"""The gateway itself: takes requests, decides, remembers, logs. No HTTP, no waiting.

A request is handled whole in one call: decided, delivered and logged before any latency. So a client that
goes away while it waits changes nothing, and two requests with one key never race.
"""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from hmac import compare_digest
from itertools import count
from secrets import token_hex

from sandbox import verdict
from sandbox.account import Account, State
from sandbox.behaviour import Behaviour
from sandbox.chats import Bubble, Chats, shown
from sandbox.feed import Feed
from sandbox.incoming import BadRequestError, Incoming, parse
from sandbox.keys import Keys
from sandbox.log import MAX_LOGGED_TEXT, TAIL_BYTES, Line, Log, read
from sandbox.media import MAX_UPLOAD_BYTES, TakenFile, Upload, Uploads
from sandbox.reports import Reports, Webhook
from sandbox.verdict import Fault, Later, Verdict

MAX_ACCOUNTS = 10_000
GROUP = "@g.us"  # the end of a group's address: no chat of the quota
LOCKED = "463"  # WhatsApp's name for this is "reach-out time lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The answer that the HTTP side has to send."""

    status: int
    payload: Mapping[str, object]
    fault: Fault = Fault.NONE
    retry_after: int = 0  # seconds
    delay: float = 0.0  # seconds
    awaits_file: Line | None = None  # the message, where its file is fetched after the answer


class Gateway:
    """The state of the sandbox. It is lost when the program ends; only the log stays."""

    def __init__(self, log: Log, *, defaults: Behaviour) -> None:
        self.defaults = defaults
        self.feed = Feed()
        self.reports = Reports()
        self._log = log
        self._ids = count(1)
        self._empty()

    def reset(self) -> None:
        """Forget everything; the log stays."""
        self._empty()
        self._log.write(_line(at=now_ms(), account="", kind="forget"))
        self.feed.touch()

    def forget(self, name: str) -> None:
        """Forget one account; the log stays."""
        self._forget(name)
        self._log.write(_line(at=now_ms(), account=name, kind="forget"))
        self.feed.touch()

    def restore(self) -> None:
        """Continue where the log ends: keys, handles and chats. Behaviours and tokens start again."""
        for line in read(self._log.path, last_bytes=TAIL_BYTES):
            if line["kind"] == "forget":
                self._forget(line["account"])
            elif line["kind"] == "session":
                with suppress(BadRequestError):
                    self.account(line["account"]).webhook = _webhook(line["to"], line["key"])
            elif line["delivered"]:
                with suppress(BadRequestError):  # a log may name more accounts than there can be at once
                    self._restore_delivery(line)

    def _empty(self) -> None:
        self.accounts: dict[str, Account] = {}
        self.chats = Chats()
        self.uploads = Uploads()
        self._keys = Keys()

    def _forget(self, name: str) -> None:
        if not name:
            self._empty()
            return
        self.accounts.pop(name, None)
        self.chats.forget(name)
        self.uploads.forget(name)
        self._keys.forget(name)

    def account(self, name: str) -> Account:
        """Return the account of that name, made on first use."""
        account = self.accounts.get(name)
        if account is None:
            if len(self.accounts) >= MAX_ACCOUNTS:
                raise BadRequestError(403, "too_many_accounts", f"There are {MAX_ACCOUNTS} accounts already.")
            account = self.accounts[name] = Account(name, self.defaults)
            self.feed.touch()
        return account

    def admit(self, name: str, authorization: str) -> Account:
        """Return the account, if the token is its own; the first token that it is used with becomes its own."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise BadRequestError(401, "unauthorized", "Send `Authorization: Bearer <token>`.")
        account = self.account(name)
        given = token.encode(errors="surrogateescape")
        if account.token is None:
            account.token = given
        if not compare_digest(account.token, given):
            raise BadRequestError(401, "unauthorized", "The token does not belong to this account.")
        return account

    def start(
        self, *, at: int, name: str, authorization: str, webhook: Webhook | None, pair: bool
    ) -> Account:
        """Start the account's session, and store where it reports to; `pair` asks a new one for its phone."""
        new = name not in self.accounts
        account = self.admit(name, authorization)
        if new and pair:
            account.become(State.SCAN_QR_CODE)
        account.start()
        if webhook is not None and webhook != account.webhook:
            line = _line(at=at, account=name, kind="session", key=webhook.secret)
            self._log.write(line | {"to": webhook.url})
            account.webhook = webhook
        self.tell_state(account)
        return account

    def tell_state(self, account: Account) -> None:
        """Report the state of an account, where it differs from the one reported last."""
        state = account.state_at(now_ms())
        if state is not account.told:
            account.told = state
            self._report(account, now_ms(), "session", state=state)
            self.feed.touch()

    def answer(self, account: Account, to: str, text: str) -> str:
        """Write back as a person in the chat; return the id of the message."""
        line = _line(at=now_ms(), account=account.name, kind="reply", size=len(text))
        line["id"] = f"r{line['at']:x}-{next(self._ids):x}"
        _describe(line, Incoming(to=to, text=text, media="", reference=""))
        line["delivered"] = True
        self._log.write(line)
        self._show_reply(account, line, shown(text))
        self._report(
            account, line["at"], "message", message={"id": line["id"], "from": to, "chat": to, "text": text}
        )
        self.feed.touch()
        return line["id"]

    def read(self, name: str, to: str) -> None:
        """Mark the chat as read, as a person who opened it."""
        chat, account = self.chats.get(name, to), self.accounts.get(name)
        if chat is None or account is None or not chat.unread:
            return
        for bubble in [b for b in chat.bubbles if not b.reply][-chat.unread :]:
            self._report(account, now_ms(), "receipt", message={"id": bubble.id}, state="read")
        chat.unread = 0
        self.feed.touch()

    def typing(self, account: Account, to: str, state: str, *, at: int) -> None:
        """Show “seen” or “typing” in a chat, and write it to the log."""
        line = _line(at=at, account=account.name, kind="typing")
        line["to"], line["text"], line["chars"], line["status"] = to, state, len(state), 204
        self._log.write(line)
        account.typing = (to, at) if state == "typing" else None
        self.feed.touch()

    def _report(self, account: Account, at: int, event: str, *, after_ms: int = 0, **facts: object) -> None:
        self.reports.add(
            account.webhook, at=at, account=account.name, event=event, after_ms=after_ms, **facts
        )

    def message(
        self,
        *,
        at: int,
        name: str,
        authorization: str,
        key: str,
        body: bytes,
        file: TakenFile | None = None,
        later: bool = False,
    ) -> Reply:
        """Take one request to send a message, with the file that came with it; with `later` its file is yet to come."""
        line = _line(at=at, account=name, kind="message", key=key, size=len(body))
        try:
            account = self.admit(name, authorization)
            account.count(at)
            if account.state is not account.told:
                self.tell_state(account)
            incoming = parse(body)
        except BadRequestError as error:
            return self._turn_away(line, error)
        return self._take(account, incoming, line, file, file_later=later)

    def fetched(self, name: str, file: TakenFile) -> None:
        """Write to the log that a file came from its address, or did not."""
        line = _line(at=now_ms(), account=name, kind="fetch", size=file.size)
        line["file"], line["type"], line["media"] = file.filename, file.content_type, file.sha256
        line["status"], line["text"] = 424 if file.problem else 200, file.problem
        self._log.write(line)

    def arrived(self, account: Account, incoming: Incoming, line: Line, file: TakenFile) -> None:
        """Deliver a message whose file came after the answer, or report that it did not come."""
        if file.problem:
            self._report_later(account, line, verdict.NOT_FETCHED)
            return
        line = Line(**{**line, "at": now_ms(), "delivered": True})
        self._keep_file(account, line, file)
        self._log.write(line)
        self._show(account, line, shown(incoming.text))
        self._report(account, line["at"], "receipt", message={"id": line["id"]}, state="delivered")
        self.feed.touch()

    def upload(
        self, *, at: int, name: str, authorization: str, upload: Upload, content: bytes | None
    ) -> Reply:
        """Take one uploaded file; `content` is kept for the page to show."""
        line = _line(at=at, account=name, kind="media", size=upload.size)
        line["text"], line["type"] = upload.filename[:MAX_LOGGED_TEXT], upload.content_type
        try:
            account = self.admit(name, authorization)
            _check_size(upload)
        except BadRequestError as error:
            return self._turn_away(line, error)
        ruling = verdict.of_upload(account)
        if ruling.delivers:
            self.uploads.put(upload, content)
            line["media"] = upload.handle
        return self._conclude(account, ruling, line, {"handle": upload.handle})

    def _take(
        self, account: Account, incoming: Incoming, line: Line, file: TakenFile | None, *, file_later: bool
    ) -> Reply:
        media_known = not incoming.media or self.uploads.knows(incoming.media, account.name)
        problem = file.problem if file else ""
        ruling = verdict.of_message(
            account, to=incoming.to, media_known=media_known, at=line["at"], problem=problem
        )
        _describe(line, incoming)
        if file is not None:
            self._keep_file(account, line, file)
        line["idempotent"] = bool(line["key"]) and account.behaviour.idempotent
        line["key"] = line["key"] or incoming.reference
        if ruling.delivers and self._opens_chat(account, incoming.to):
            if account.behaviour.lock_first_contacts:
                ruling = replace(ruling, delivers=False)
                self._lock(account, line)
            elif not account.new_chats.allow(account.behaviour, line["at"]):
                ruling = verdict.NEW_CHATS_USED_UP
        later = verdict.of_later(account) if ruling.delivers else None
        if later is not None and not later.delivers:
            ruling = replace(ruling, delivers=False)
            account.accepted.add(line["at"])
            line["id"] = f"m{line['at']:x}-{next(self._ids):x}"
        awaits_file = ruling.delivers and file_later
        if awaits_file:
            ruling = replace(ruling, delivers=False)
            self._name(account, line)
        elif ruling.delivers:
            self._deliver(account, incoming, line)
        if later is not None and not line["duplicate"]:
            self._report_later(account, line, later)
        reply = self._conclude(account, ruling, line, {"id": line["id"]})
        return replace(reply, awaits_file=line) if awaits_file and not line["duplicate"] else reply

    def _keep_file(self, account: Account, line: Line, file: TakenFile) -> None:
        """Keep the file of a message for the page to show, under the SHA-256 of its content."""
        line["file"], line["type"], line["media"] = file.filename, file.content_type, file.sha256
        if not file.problem:
            upload = Upload(
                handle=file.sha256,
                account=account.name,
                filename=file.filename,
                content_type=file.content_type,
                size=file.size,
            )
            self.uploads.put(upload, file.content)

    def _report_later(self, account: Account, line: Line, later: Later) -> None:
        self._report(
            account,
            line["at"],
            "receipt",
            message={"id": line["id"]},
            state=later.state,
            reason=later.reason,
            after_ms=account.behaviour.late_ms,
        )

    def _name(self, account: Account, line: Line) -> None:
        """Give the message its id; a key that was used before names the first message with it."""
        account.accepted.add(line["at"])
        line["id"], new = f"m{line['at']:x}-{next(self._ids):x}", True
        if line["idempotent"]:
            line["id"], new = self._keys.remember(account.name, line["key"])
        line["duplicate"] = not new

    def _deliver(self, account: Account, incoming: Incoming, line: Line) -> None:
        self._name(account, line)
        if not line["duplicate"]:
            self._show(account, line, shown(incoming.text))
            self._report(account, line["at"], "receipt", message={"id": line["id"]}, state="delivered")

    def _opens_chat(self, account: Account, to: str) -> bool:
        return not to.endswith(GROUP) and self.chats.get(account.name, to) is None

    def _lock(self, account: Account, line: Line) -> None:
        """Take the message and report its failure later, as WhatsApp does."""
        at, line["id"] = line["at"], f"m{line['at']:x}-{next(self._ids):x}"
        until = account.new_chats.lock(account.behaviour, at)
        self._report(account, at, "receipt", message={"id": line["id"]}, state="failed", code=LOCKED)
        self._report(account, at, "first_contacts_locked", until=until, code=LOCKED)

    def _show(self, account: Account, line: Line, text: str) -> None:
        account.delivered += 1
        account.typing = None
        account.last_at = line["at"]
        bubble = Bubble(id=line["id"], at=line["at"], text=text, media=line["media"])
        self.chats.add(account.name, line["to"], bubble)

    def _show_reply(self, account: Account, line: Line, text: str) -> None:
        bubble = Bubble(id=line["id"], at=line["at"], text=text, media="", reply=True)
        self.chats.add(account.name, line["to"], bubble)

    def _conclude(
        self, account: Account, ruling: Verdict, line: Line, accepted: Mapping[str, object]
    ) -> Reply:
        line["status"], line["fault"] = ruling.status, ruling.fault
        line["delivered"] = ruling.delivers and not line["duplicate"]
        self._log.write(line)
        self.feed.touch()
        return Reply(
            status=ruling.status,
            payload=_failure(ruling) if ruling.error else accepted,
            fault=ruling.fault,
            retry_after=ruling.retry_after,
            delay=account.latency(),
        )

    def _turn_away(self, line: Line, error: BadRequestError) -> Reply:
        line["status"] = error.status
        self._log.write(line)
        return Reply(status=error.status, payload={"error": error.error, "message": error.reason})

    def _restore_delivery(self, line: Line) -> None:
        account = self.account(line["account"])
        if line["idempotent"]:
            self._keys.remember(line["account"], line["key"])
        if line["kind"] == "media":
            self.uploads.put(
                Upload(
                    handle=line["media"],
                    account=line["account"],
                    filename=line["text"],
                    content_type=line["type"],
                    size=line["bytes"],
                )
            )
        else:
            show = self._show_reply if line["kind"] == "reply" else self._show
            show(account, line, line["text"] + (" …" if line["chars"] > len(line["text"]) else ""))


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def _webhook(url: str, secret: str) -> Webhook | None:
    return Webhook(url=url, secret=secret) if url else None


def new_handle() -> str:
    return f"media-{token_hex(12)}"


def _check_size(upload: Upload) -> None:
    if upload.size > MAX_UPLOAD_BYTES:
        raise BadRequestError(413, "media_too_large", f"A file has at most {MAX_UPLOAD_BYTES} bytes.")
    if not upload.size:
        raise BadRequestError(400, "bad_request", "The file is empty.")


def _failure(ruling: Verdict) -> dict[str, object]:
    """Return the body of a failed answer. `accepted` is included only where the sandbox tells the truth about it."""
    failure: dict[str, object] = {"error": ruling.error, "message": ruling.reason}
    if ruling.error in {"try_again", "file_not_fetched"}:
        failure["accepted"] = False
    return failure


def _describe(line: Line, incoming: Incoming) -> None:
    line["to"], line["media"] = incoming.to, incoming.media
    line["text"], line["chars"] = incoming.text[:MAX_LOGGED_TEXT], len(incoming.text)
    line["hash"] = blake2b(incoming.text.encode(errors="surrogatepass"), digest_size=8).hexdigest()


def _line(*, at: int, account: str, kind: str, key: str = "", size: int = 0) -> Line:
    """Return a line about a request of which nothing is known yet."""
    return Line(
        at=at, account=account, kind=kind, to="", key=key, idempotent=False, text="", hash="", chars=0,
        media="", type="", bytes=size, file="", delivered=False, duplicate=False, status=0, fault="", id="",
    )  # fmt: skip
