from sandbox.groups import group, name, number_of


def test_a_hundred_thousand_groups_have_names_of_their_own() -> None:
    assert len({name(number) for number in range(100_000)}) == 100_000


def test_an_id_holds_its_number() -> None:
    for number in (0, 11, 99_999):
        assert number_of("choir", group("choir", number).id) == number


def test_an_id_looks_like_one_of_a_group() -> None:
    found = group("choir", 7)
    assert found.id.startswith("1203630")
    assert found.id.endswith("@g.us")
    assert len(found.id.removesuffix("@g.us")) == 18


def test_what_is_no_id_of_the_account_has_no_number() -> None:
    for address in ("", "+41791234567", "120363000000000001@g.us", group("other", 1).id, "x" * 23):
        assert number_of("choir", address) is None
