import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sandbox import witness
from sandbox.log import Log, read


def write(path: Path, *lines: dict[str, Any]) -> None:
    usual = {
        "account": "a",
        "kind": "message",
        "to": "g",
        "key": "",
        "hash": "h",
        "media": "",
        "delivered": True,
    }
    path.write_text("".join(json.dumps({**usual, "at": at, **line}) + "\n" for at, line in enumerate(lines)))


@given(
    moments=st.lists(st.integers(0, 300), max_size=60),
    ms=st.integers(1, 120),
)
def test_the_worst_window_is_the_worst_of_all_windows(moments: list[int], ms: int) -> None:
    # A window can be moved until it starts at an event without losing one.
    worst = max((sum(start <= moment < start + ms for moment in moments) for start in moments), default=0)
    assert witness.worst_window(moments, ms) == worst


def test_deliveries_are_what_arrived(tmp_path: Path) -> None:
    log = tmp_path / "log"
    write(
        log, {"key": "1"}, {"key": "2", "delivered": False}, {"account": "b", "key": "3"}, {"kind": "media"}
    )
    assert [line["key"] for line in witness.deliveries(log)] == ["1", "3"]
    assert [line["key"] for line in witness.deliveries(log, "b")] == ["3"]
    assert len(witness.uploads(log)) == 1
    assert witness.uploads(log, "b") == []


def test_doubles_are_found_by_their_key(tmp_path: Path) -> None:
    log = tmp_path / "log"
    write(
        log,
        {"key": "1"},
        {"key": "1", "delivered": False},  # recognised by the gateway
        {"key": "2"},
        {"key": "2"},
        {"key": "2", "to": "another"},
        {"key": "2", "account": "b"},
    )
    assert witness.doubles(log) == {("a", "g", "2"): 2}


def test_doubles_without_a_key_are_found_by_their_content(tmp_path: Path) -> None:
    log = tmp_path / "log"
    write(log, {}, {}, {"hash": "other"}, {"media": "picture"})
    assert list(witness.doubles(log).values()) == [2]


def test_times_are_those_of_all_that_was_received(tmp_path: Path) -> None:
    log = tmp_path / "log"
    write(log, {}, {"delivered": False}, {"account": "b"})
    assert witness.times(log) == {"a": [0, 1], "b": [2]}
    assert witness.times(log, delivered=True) == {"a": [0], "b": [2]}


def test_a_line_that_is_still_being_written_is_left_out(tmp_path: Path) -> None:
    log = tmp_path / "log"
    write(log, {"key": "1"})
    with log.open("a") as file:
        file.write('{"at": 5, "acc')
    assert len(witness.deliveries(log)) == 1


def test_a_torn_line_does_not_spoil_the_next(tmp_path: Path) -> None:
    log = tmp_path / "log"
    write(log, {"key": "1"})
    with log.open("a") as file:
        file.write('{"at": 5, "acc')
    Log(log).close()
    with log.open("a") as file:
        file.write('{"at": 6}\n')
    assert [line["at"] for line in read(log)] == [0, 6]


def test_no_log_is_an_empty_one(tmp_path: Path) -> None:
    assert witness.deliveries(tmp_path / "none") == []


def test_the_tail_of_a_log_starts_with_a_whole_line(tmp_path: Path) -> None:
    log = tmp_path / "log"
    write(log, {"key": "1"}, {"key": "2"}, {"key": "3"})
    third = len(log.read_bytes()) // 3
    assert [line["key"] for line in read(log, last_bytes=third * 2 + 5)] == ["2", "3"]
