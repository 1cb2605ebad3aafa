"""`REDIS_URL`: which addresses are taken, and that a certificate is checked by all who connect."""

import asyncio
import datetime
import ipaddress
import os
import select
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from channels_redis.core import RedisChannelLayer
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from config.embedded.process import until
from config.embedded.redis_server import _program
from config.redis.address import RedisAddress, redis_address
from config.redis.broker import Connection
from config.redis.client import client, refuse_cluster


class TestAddresses:
    @pytest.mark.parametrize(
        "url",
        [
            "sentinel://one:26379/0",
            "redis+sentinel://one/main",
            "redis+cluster://one",
            "rediss+cluster://one",
        ],
    )
    def test_sentinel_and_cluster_are_refused_with_a_sentence(self, url: str) -> None:
        with pytest.raises(
            ImproperlyConfigured, match=r"Sentinel and Redis Cluster are not supported\. Name the one"
        ):
            redis_address(url)

    @pytest.mark.parametrize("url", ["amqp://one", "localhost:6379", "http://one"])
    def test_another_kind_of_server_is_refused(self, url: str) -> None:
        with pytest.raises(ImproperlyConfigured, match="it must be redis://, rediss:// or unix://"):
            redis_address(url)

    @pytest.mark.parametrize(
        "query",
        [
            "ssl_cert_reqs=none",
            "ssl_cert_reqs=CERT_NONE",
            "ssl_cert_reqs=optional",
            "ssl_check_hostname=false",
        ],
    )
    def test_nobody_can_ask_not_to_check_a_certificate(self, query: str) -> None:
        with pytest.raises(ImproperlyConfigured, match="always checked"):
            redis_address(f"rediss://one:6380/0?{query}")

    def test_certificates_without_encryption_are_refused(self) -> None:
        with pytest.raises(ImproperlyConfigured, match="only checked at a REDIS_URL with rediss://"):
            redis_address("redis://one", ca_file="/etc/ca.pem")

    def test_what_is_said_of_certificates_leaves_the_address(self) -> None:
        read = redis_address("rediss://user:pass@one:6380/2?ssl_ca_certs=/ca.pem&ssl_cert_reqs=required&x=1")
        assert read.url == read.broker == "rediss://user:pass@one:6380/2?x=1"
        assert read.tls == {
            "ssl_cert_reqs": "required",
            "ssl_check_hostname": True,
            "ssl_ca_certs": "/ca.pem",
        }

    def test_a_socket_is_spelled_as_celery_spells_it(self) -> None:
        assert redis_address("unix:///srv/r.sock?db=3").broker == "redis+socket:///srv/r.sock?virtual_host=3"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """A certificate and its key, as files."""

    certificate: Path
    key: Path


def certificate(folder: Path, name: str, *, hosts: tuple[str, ...], signer: Signed | None = None) -> Signed:
    """Sign a certificate for `hosts`, by `signer` or by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.UTC)
    who = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    issuer, signing = who, key
    if signer is not None:
        issuer = x509.load_pem_x509_certificate(signer.certificate.read_bytes()).subject
        loaded = serialization.load_pem_private_key(signer.key.read_bytes(), None)
        assert isinstance(loaded, ec.EllipticCurvePrivateKey)
        signing = loaded
    builder = (
        x509.CertificateBuilder()
        .subject_name(who)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=not hosts, path_length=None), critical=True)
        # Python 3.13 wants what the standard wants: key identifiers, and what an authority's key is for.
        .add_extension(
            x509.KeyUsage(
                digital_signature=True,
                key_cert_sign=not hosts,
                crl_sign=not hosts,
                content_commitment=False,
                key_encipherment=False,
                data_encipherment=False,
                key_agreement=False,
                encipher_only=False,
                decipher_only=False,
            ),
            critical=True,
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()), critical=False
        )
    )
    if hosts:
        names = [
            x509.IPAddress(ipaddress.ip_address(h)) if h[0].isdigit() else x509.DNSName(h) for h in hosts
        ]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    made = Signed(certificate=folder / f"{name}.pem", key=folder / f"{name}.key")
    made.certificate.write_bytes(
        builder.sign(signing, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    )
    made.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return made


@pytest.fixture(params=["good", "self-signed", "wrong name"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, int, Path]]:
    """A real Redis behind TLS; which certificate it shows, its port, and the authority to trust.

    The TLS is a proxy's, since not every redis-server is built with it.
    """
    authority = certificate(tmp_path, "authority", hosts=())
    shown = {
        "good": lambda: certificate(tmp_path, "good", hosts=("127.0.0.1",), signer=authority),
        "self-signed": lambda: certificate(tmp_path, "self", hosts=("127.0.0.1",)),
        "wrong name": lambda: certificate(tmp_path, "other", hosts=("other.example",), signer=authority),
    }[request.param]()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(shown.certificate, shown.key)
    with socket.create_server(("127.0.0.1", 0)) as free:
        plain = int(free.getsockname()[1])
    options = ["--port", str(plain), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path)]
    with (
        subprocess.Popen([str(_program()), *options], stdout=subprocess.DEVNULL) as process,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        try:
            assert until(lambda: _listens(plain), seconds=30)
            threading.Thread(target=_serve_tls, args=(listener, context, plain), daemon=True).start()
            yield request.param, int(listener.getsockname()[1]), authority.certificate
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            process.terminate()


def _serve_tls(listener: socket.socket, context: ssl.SSLContext, port: int) -> None:
    """Take connections until the listener is closed; who does not trust the certificate leaves by themselves."""
    with suppress(OSError):
        while True:
            taken, _ = listener.accept()
            threading.Thread(target=_pass_on, args=(taken, context, port), daemon=True).start()


def _pass_on(taken: socket.socket, context: ssl.SSLContext, port: int) -> None:
    with (
        suppress(OSError),
        taken,
        context.wrap_socket(taken, server_side=True) as near,
        socket.create_connection(("127.0.0.1", port)) as far,
    ):
        near.setblocking(False)
        while True:
            readable = [near] if near.pending() else select.select([near, far], [], [])[0]
            for source, sink in ((near, far), (far, near)):
                if source in readable:
                    with suppress(ssl.SSLWantReadError):
                        if not (data := source.recv(65536)):
                            return
                        sink.sendall(data)


def _listens(port: int) -> bool:
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0


def _broker(address: RedisAddress) -> Connection:
    options = {"max_retries": 0}
    return Connection(address.broker, ssl=address.tls, transport_options=options)  # type: ignore[no-untyped-call]


def test_all_who_connect_check_the_certificate(server: tuple[str, int, Path]) -> None:
    shown, port, authority = server
    url = f"rediss://127.0.0.1:{port}/0"
    address = redis_address(url, ca_file=str(authority))

    def by_client() -> object:
        with override_settings(REDIS_URL=url, REDIS_CA_FILE=str(authority)):
            client.cache_clear()
            return client().ping()

    def by_broker() -> object:
        with _broker(address) as broker:
            return broker.default_channel

    def by_channel_layer() -> object:
        async def send() -> bool:
            layer = RedisChannelLayer(hosts=[{"address": address.url, **address.tls}])
            await layer.send("somewhere", {"type": "hello"})
            await layer.close_pools()
            return True

        return asyncio.run(send())

    try:
        for connect in (by_client, by_broker, by_channel_layer):
            if shown == "good":
                assert connect()
            else:
                with pytest.raises((RedisError, OSError, OperationalError), match=r"(?i)certificate"):
                    connect()
    finally:
        client.cache_clear()


def _port_of_a_cluster() -> int:
    """A free port; a server of a cluster also takes the one that is 10,000 above it."""
    for port in range(20_000 + os.getpid() % 10_000, 55_000):
        if not _listens(port) and not _listens(port + 10_000):
            return port
    raise AssertionError("No port is free.")


def test_a_cluster_is_refused_with_a_sentence(tmp_path: Path) -> None:
    port = _port_of_a_cluster()
    words = f"--port {port} --bind 127.0.0.1 --cluster-enabled yes --dir {tmp_path}"
    command = [str(_program()), *words.split(), "--save", ""]
    with (
        subprocess.Popen(command, stdout=subprocess.DEVNULL) as process,
        override_settings(REDIS_URL=f"redis://127.0.0.1:{port}/0"),
    ):
        try:
            assert until(lambda: _listens(port), seconds=30)
            client.cache_clear()
            with pytest.raises(
                ImproperlyConfigured, match="leads to a Redis Cluster, which is not supported"
            ):
                refuse_cluster()
        finally:
            client.cache_clear()
            process.terminate()
