"""`python -m benchmarks` says what there is."""

import pytest

from benchmarks import __main__ as dispatcher


def test_a_module_with_a_main_is_a_benchmark_and_its_first_line_says_what_for() -> None:
    known = dispatcher.available()
    assert known["plans"].startswith("The index that serves each query")
    assert not {"crowd", "scratch", "all"} & set(known)


def test_without_a_name_they_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatcher.main([]) == 0
    assert "plans" in capsys.readouterr().out


def test_with_a_name_that_is_none_they_are_listed_and_it_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatcher.main(["speed"]) == 2
    assert "plans" in capsys.readouterr().out
