"""The real nginx with the shipped configuration, on ports and with a certificate of the test's own."""

import os
import shutil
import socket
import ssl
import subprocess
import time
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.config.programs import PROJECT

NAME = "paceline.example"
SHIPPED = PROJECT / "deploy" / "nginx.conf"
STARTS_WITHIN = 20.0  # seconds
MAIN = """
{user}
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
worker_processes 1;
events {{ worker_connections 256; }}
http {{
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/paceline.conf;
}}
"""


def program() -> str:
    """Return nginx's program; without one the test is skipped, or fails where nginx is required."""
    for place in (shutil.which("nginx"), "/usr/sbin/nginx"):
        if place and Path(place).is_file():
            return place
    if os.environ.get("NGINX_REQUIRED") == "1":
        pytest.fail("NGINX_REQUIRED is set, but there is no nginx here.")
    pytest.skip("There is no nginx here.")


class Nginx:
    """Serves the site at `port` over TLS, and at `plain_port` what leads there."""

    def __init__(self, folder: Path, *, upstream: int) -> None:
        self.folder = folder
        self.port, self.plain_port = _free_port(), _free_port()
        _make_certificate(folder)
        (folder / "paceline.conf").write_text(self._rendered(upstream))
        (folder / "nginx.conf").write_text(MAIN.format(folder=folder, user=_user()))

    def _rendered(self, upstream: int) -> str:
        """Change what an installation changes, and nothing else."""
        text = SHIPPED.read_text()
        lines = [line for line in text.splitlines() if not line.strip().startswith("listen [::]")]
        changes = {
            "listen 443": f"listen 127.0.0.1:{self.port}",
            "listen 80": f"listen 127.0.0.1:{self.plain_port}",
            "127.0.0.1:8000": f"127.0.0.1:{upstream}",
            "/etc/ssl/certs/paceline.pem": f"{self.folder}/cert.pem",
            "/etc/ssl/private/paceline.key": f"{self.folder}/key.pem",
            "/var/log/nginx/paceline.log": f"{self.folder}/access.log",
        }
        rendered = "\n".join(lines)
        for old, new in changes.items():
            assert old in rendered, f"{old} is not in the shipped file any more."
            rendered = rendered.replace(old, new)
        return rendered

    def connect(self, *, source: str = "127.0.0.1", name: str = NAME) -> ssl.SSLSocket:
        context = ssl.create_default_context(cafile=str(self.folder / "cert.pem"))
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=60, source_address=(source, 0))
        return context.wrap_socket(plain, server_hostname=name)

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        *,
        source: str = "127.0.0.1",
    ) -> HTTPResponse:
        """Ask over TLS; the body of the answer is read."""
        line = HTTPConnection(NAME)
        line.sock = self.connect(source=source)
        try:
            line.request(method, path, body, headers or {})
            answer = line.getresponse()
            answer.content = answer.read()  # type: ignore[attr-defined]
            answer.text = answer.content.decode(errors="replace")  # type: ignore[attr-defined]
            return answer
        finally:
            line.close()

    def logged(self, *, until: str) -> str:
        """Return the log once it has `until`: nginx writes a line after it has answered."""
        deadline = time.monotonic() + STARTS_WITHIN
        while until not in (text := (self.folder / "access.log").read_text()):
            assert time.monotonic() < deadline, f"nginx never logged {until}"
            time.sleep(0.02)
        return text

    def __enter__(self) -> Self:
        command = [program(), "-e", f"{self.folder}/error.log", "-c", f"{self.folder}/nginx.conf"]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + STARTS_WITHIN
        while not _answers(self.port):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self._end()
                raise RuntimeError(
                    f"nginx did not start: {self._process.stderr and self._process.stderr.read()}"
                )
            time.sleep(0.05)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        self._process.terminate()
        self._process.wait(10)
        if self._process.stderr:
            self._process.stderr.close()


def _user() -> str:
    """Keep the rights of whoever runs the tests: the folder of the test is theirs alone."""
    return "user root;" if os.geteuid() == 0 else ""


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _make_certificate(folder: Path) -> None:
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NAME)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "key.pem").write_bytes(private)
