"""The shipped Caddyfile and HAProxy configuration: the programs accept them, and Caddy limits what nginx limits."""

import re

from tests.config.programs import PROJECT
from tests.deploy.installed import check

CADDYFILE = PROJECT / "deploy" / "Caddyfile"
NGINX = PROJECT / "deploy" / "nginx.conf"


def test_caddy_finds_nothing_wrong() -> None:
    checked = check("caddy", "validate", "--config", str(CADDYFILE), "--adapter", "caddyfile")
    assert checked.returncode == 0, checked.stderr
    assert '"level":"error"' not in checked.stderr


def test_haproxy_finds_nothing_wrong() -> None:
    checked = check("haproxy", "-c", "-q", "-f", str(PROJECT / "deploy" / "haproxy-redis.cfg"))
    assert (checked.returncode, checked.stderr) == (0, "")


def test_both_proxies_allow_the_same_sizes() -> None:
    """Apart from what has no body at all: plain HTTP and sockets."""
    nginx = set(re.findall(r"client_max_body_size (\w+);", NGINX.read_text())) - {"1k"}
    caddy = {size[:-1].lower() for size in re.findall(r"max_size (\w+)", CADDYFILE.read_text())}
    assert caddy == nginx


def test_both_proxies_keep_the_same_pages_to_themselves() -> None:
    closed = set(re.findall(r"location = (/\w+) \{\s+allow 127", NGINX.read_text()))
    [paths] = re.findall(r"@watching \{\s+path (.*)", CADDYFILE.read_text())
    assert set(paths.split()) == closed == {"/metrics", "/readyz"}
