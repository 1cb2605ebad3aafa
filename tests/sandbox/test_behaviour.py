import pytest

from sandbox.behaviour import Behaviour, BehaviourError, as_json, changed


def test_only_what_is_named_changes() -> None:
    first = changed(Behaviour(), {"error_rate": 0.5, "reject": ["a", "b"]})
    second = changed(first, {"latency_ms": 20})
    assert second == Behaviour(error_rate=0.5, reject=frozenset({"a", "b"}), latency_ms=20)


def test_true_is_always_and_false_is_never() -> None:
    assert changed(Behaviour(), {"hang": True, "cut": False}) == Behaviour(hang=1.0)


@pytest.mark.parametrize(
    ("name", "wish"),
    [
        ("mood", 1),
        ("error_rate", 1.1),
        ("error_rate", -0.1),
        ("error_rate", "1"),
        ("error_rate", float("nan")),
        ("latency_ms", 1.5),
        ("latency_ms", True),
        ("latency_ms", -1),
        ("latency_ms", 600_001),
        ("rate_limit", 20_001),
        ("not_connected", 1),
        ("reject", "all"),
        ("reject", [1]),
        ("groups", None),
    ],
)
def test_an_impossible_wish_is_named(name: str, wish: object) -> None:
    with pytest.raises(BehaviourError, match=name):
        changed(Behaviour(), {name: wish})


def test_what_is_read_can_be_set_again() -> None:
    behaviour = Behaviour(reject=frozenset({"b", "a"}), cut=0.25, seed=7)
    assert as_json(behaviour)["reject"] == ["a", "b"]
    assert changed(Behaviour(), as_json(behaviour)) == behaviour
