"""Lets the web process hold as many open files as it has sockets: many systems allow 1,024 unless a program asks."""

import resource
import sys

import structlog

log = structlog.get_logger(__name__)

OTHERS = 500  # requests, connections to the servers, files


def allow(sockets: int) -> int:
    """Raise the limit of open files as far as the system lets us; return the number of sockets that it leaves."""
    soft, hard = (_number(limit) for limit in resource.getrlimit(resource.RLIMIT_NOFILE))
    wanted = sockets + OTHERS
    granted = min(wanted, hard)
    if soft < granted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (granted, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    if granted < wanted:
        log.warning("few_open_files", allowed=granted, wanted=wanted, hint="LimitNOFILE= or ulimit -n")
    return granted - OTHERS


def _number(limit: int) -> int:
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit
