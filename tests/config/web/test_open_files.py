"""The web process may hold as many open files as it has sockets."""

import resource

import pytest

from config.web import open_files

OTHERS = open_files.OTHERS


@pytest.mark.parametrize(
    ("soft", "hard", "set_to", "sockets"),
    [
        (1024, 65536, 5000 + OTHERS, 5000),  # the usual limit is raised
        (1024, 4096, 4096, 4096 - OTHERS),  # as far as the system lets us
        (65536, 65536, None, 5000),  # enough already
        (1024, resource.RLIM_INFINITY, 5000 + OTHERS, 5000),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, None, 5000),
    ],
)
def test_the_limit_is_raised_where_it_is_too_low(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, set_to: int | None, sockets: int
) -> None:
    raised: list[int] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: raised.append(limits[0]))
    assert open_files.allow(5000) == sockets
    assert raised == ([] if set_to is None else [set_to])
