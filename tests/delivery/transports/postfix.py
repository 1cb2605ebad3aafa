"""A real postfix of the test's own: on loopback, with its own folder, and no mail leaves it."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path

from tests.delivery.transports.harness import port_without_server

PROGRAM = shutil.which("postfix", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
SENDER = "news@school.example"
READER = "reader@school.example"
ARCHIVE = "archive@school.example"
# Its parts, none of them in a jail, and none that would send something on.
SERVICES = """
127.0.0.1:{port} inet n - n - - smtpd
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 discard
defer unix - - n - 0 discard
error unix - - n - - error
virtual unix - n n - - virtual
proxymap unix - - n - - proxymap
anvil unix - - n - 1 anvil
postlog unix-dgram n - n - 1 postlogd
"""
USUAL = {
    "compatibility_level": "3.6",
    "command_directory": "/usr/sbin",
    "daemon_directory": "/usr/lib/postfix/sbin",
    "myhostname": "mail.school.example",
    "mydestination": "",
    "mynetworks": "",
    "inet_interfaces": "127.0.0.1",
    "inet_protocols": "ipv4",
    "alias_maps": "",
    "maillog_file_prefixes": "/",
    "virtual_mailbox_domains": "school.example",
    "virtual_mailbox_maps": f"inline:{{ {{{READER}=reader/}}, {{{ARCHIVE}=archive/}} }}",
    "virtual_minimum_uid": "1",
    "smtpd_relay_restrictions": "reject_unauth_destination",
    "smtpd_client_event_limit_exceptions": "",  # else limits spare this machine
    "smtpd_peername_lookup": "no",
}


def is_wanted() -> bool:
    """Return whether its tests must run: where it can be started, and always in the continuous integration."""
    return os.environ.get("POSTFIX_REQUIRED") == "1" or (PROGRAM is not None and os.geteuid() == 0)


class Postfix:
    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port

    def credentials(self, **others: str) -> dict[str, str]:
        place = {"host": "127.0.0.1", "port": str(self.port), "security": "none"}
        return {**place, "from_address": SENDER, **others}

    def has_delivered(self, mailbox: str) -> list[EmailMessage]:
        return [_read(path) for path in sorted((self.folder / "mail" / mailbox).glob("new/*"))]

    def connections(self) -> int:
        return (self.folder / "log").read_text().count(": connect from")

    def order(self, verb: str) -> None:
        assert PROGRAM is not None, "POSTFIX_REQUIRED is set, but there is no postfix."
        subprocess.run([PROGRAM, "-c", self.folder / "conf", verb], check=True, timeout=20)


@contextmanager
def running(**settings: str) -> Iterator[Postfix]:
    """A postfix with these settings beside the usual ones."""
    with port_without_server() as port:
        pass
    # Not pytest's folder: postfix works as a user of its own, who may not look into that.
    with tempfile.TemporaryDirectory(prefix="postfix-") as name:
        server = Postfix(Path(name), port)
        server.folder.chmod(0o755)
        _furnish(server.folder, port, settings)
        server.order("start")
        try:
            yield server
        finally:
            server.order("abort")  # does not wait for what is going on


def _furnish(folder: Path, port: int, settings: Mapping[str, str]) -> None:
    user = pwd.getpwnam("postfix")
    for part in ("conf", "queue", "data", "mail"):
        (folder / part).mkdir()
    for part in ("data", "mail"):
        os.chown(folder / part, user.pw_uid, user.pw_gid)
    places = {
        "queue_directory": f"{folder}/queue",
        "data_directory": f"{folder}/data",
        "maillog_file": f"{folder}/log",
        "virtual_mailbox_base": f"{folder}/mail",
        "virtual_uid_maps": f"static:{user.pw_uid}",
        "virtual_gid_maps": f"static:{user.pw_gid}",
    }
    lines = [f"{name} = {value}\n" for name, value in {**USUAL, **places, **settings}.items()]
    (folder / "conf" / "main.cf").write_text("".join(lines))
    (folder / "conf" / "master.cf").write_text(SERVICES.format(port=port))


def _read(path: Path) -> EmailMessage:
    found = message_from_bytes(path.read_bytes(), policy=policy.default)
    assert isinstance(found, EmailMessage)
    return found
