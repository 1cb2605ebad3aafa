import pytest

from delivery.parts import MissingVariableError, render, variables


def test_variables_are_filled_in() -> None:
    assert render("Hello {{ name }} of {{city}}", {"name": "Ada", "city": "Ipoh"}) == "Hello Ada of Ipoh"


def test_what_is_filled_in_is_not_looked_at_again() -> None:
    assert render("{{ a }}", {"a": "{{ b }}", "b": "no"}) == "{{ b }}"


@pytest.mark.parametrize(("value", "text"), [(0, "0"), (7.5, "7.5"), (False, "False")])
def test_a_value_need_not_be_a_text(value: object, text: str) -> None:
    assert render("{{ n }}", {"n": value}) == text


@pytest.mark.parametrize("values", [{}, {"name": None}, {"name": ""}])
def test_a_missing_value_is_named(values: dict[str, object]) -> None:
    with pytest.raises(MissingVariableError, match=r"No value for \{\{ name \}\}"):
        render("Hello {{ name }}", values)


def test_other_braces_are_text() -> None:
    assert render("{ a } {{}} {{ a b }}", {}) == "{ a } {{}} {{ a b }}"


def test_the_variables_of_a_text_are_known_before_anything_is_sent() -> None:
    assert variables("{{ a }} {{ b.c }} {{a}} { d }") == {"a", "b.c"}
