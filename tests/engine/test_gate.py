"""The gate: what is shut stays shut for its own, and opens only by who shut it."""

from cacheproxy.engine.gate import Gate


def test_a_base_that_is_not_known_holds_back_its_own_answers_alone():
    gate = Gate()
    gate.shut("a b")
    assert not gate.passes(["a%20b"])
    assert not gate.passes(["c", "a%20b@v1"])
    assert gate.passes(["c"])
    assert gate.passes([])
    gate.open("a b")
    assert gate.passes(["a%20b"])


def test_while_nothing_is_certain_all_that_rest_on_a_base_are_held_back():
    gate = Gate()
    gate.shut("a")
    gate.shut_for_all("events")
    assert not gate.passes(["b"])
    assert gate.passes([])
    gate.open_for_all("events")
    assert gate.passes(["b"])
    assert not gate.passes(["a"])
