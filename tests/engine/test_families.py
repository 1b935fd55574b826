"""What is learned of the prompts that go to a backend: families, where their heads part, what the backend had of them."""

import json
import random

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cacheproxy.core.blocks import Block
from cacheproxy.engine.families import LABELS, LONGEST, MOST, WIDEST, Families
from cacheproxy.engine.family import LONGEST_SHOWN, PLACES, RECENT, WAITS
from tests.core.heads import ODD, UUIDS, head, prose, tool
from tests.engine.fakes import Notes

A, B = b"a" * 16, b"b" * 16
LONG = prose(1)


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def families(notes) -> Families:
    return Families(notes)


def at(second, text=LONG):
    return head(f"The current time is 2026-03-01 10:00:{second:02}.\n{text}")


def rows(families):
    return {row["id"]: row for row in families.rows()}


# --- families --------------------------------------------------------------------------------------------------------


def test_a_prompt_with_a_clock_is_one_family_and_the_clock_is_named(families, notes):
    """B08: what is shared, where it parts, which rule, what it would save, how often."""
    known = {families.sent(A, "m", at(second), ()) for second in range(10, 15)}
    assert len(known) == 1
    (row,) = families.rows()
    front = len("The current time is ")
    assert row["divergence"] == {
        "pointer": "/messages/0/content", "offset": front, "kind": "clock", "rule": "clock",
        "span": ["2026-03-01 10:00:13", "2026-03-01 10:00:14"], "length": [19, 19],
        "saves": {"bytes": len(LONG) + 2, "tokens": (len(LONG) + 2) // 4}, "seen": 4,
    }  # fmt: skip
    assert row["shared"] == {"bytes": front + 18, "tokens": (front + 18) // 4}
    assert row["head"]["bytes"] == front + 19 + 2 + len(LONG)
    assert row["requests"] == 5
    assert notes.counted == [("divergence", "clock")] * 4


def test_equal_heads_are_wholly_shared(families, notes):
    for _ in range(3):
        families.sent(A, "m", at(1), ())
    (row,) = families.rows()
    assert row["shared"] == row["head"]
    assert (row["requests"], row["divergence"], notes.counted) == (3, None, [])
    assert families.summary()["shared_share"] == 1


def test_scopes_and_models_know_nothing_of_each_other(families, notes):
    for scope in (A, B):
        for model in ("m", "n"):
            families.sent(scope, model, at(len(notes.counted)), ())
    assert len(rows(families)) == 4
    assert notes.counted == []
    assert len({row["scope"] for row in families.rows()}) == 2
    assert not any(row["scope"] in (A.hex(), B.hex(), A.decode()) for row in families.rows())


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_prompts_in_any_order_find_their_families(seed):
    """Several prompts with volatile values at any place, mixed; each is one family, for the whole time."""
    dice = random.Random(seed)
    families = Families(Notes())
    prompts = [prose(seed + n, dice.randint(10, 40)).split("\n") for n in range(4)]
    places = [dice.randint(0, len(lines)) for lines in prompts]
    made = [families.sent(A, "m", head("\n".join(lines)), ()) for lines in prompts]
    for number in range(40):
        which = dice.randrange(4)
        lines = list(prompts[which])
        lines.insert(places[which], dice.choice([
            f"It is 2026-03-01 10:{number:02}:00.", f"Request id: {UUIDS[number % 2]}", f"You help {['Anna', 'Bob', 'Li'][number % 3]}.",
        ]))  # fmt: skip
        assert families.sent(A, "m", head("\n".join(lines)), ()) is made[which]


def drifted(families, old, new):
    """Line by line in any order one prompt becomes another; the family."""
    lines = old.split("\n")
    made = {families.sent(A, "m", head(old), ())}
    order = list(range(len(lines)))
    random.Random(1).shuffle(order)
    for number in order:
        lines[number] = new.split("\n")[number]
        made.add(families.sent(A, "m", head("\n".join(lines)), ()))
    (family,) = made
    return family


def test_a_family_follows_its_prompt_as_it_changes(families):
    """Each head is like the one before; in the end it is known by the new prompt and no more by the old one."""
    family = drifted(families, prose(1, 60), prose(2, 60))
    assert families.sent(A, "m", head(prose(3, 60)), ()) is not family
    assert families.sent(A, "m", head(f"Hello there. {prose(2, 60)}"), ()) is family
    assert families.sent(A, "m", head(prose(1, 60)), ()) is not family
    assert is_in_order(families)


def test_ids_tell_nothing_and_last(notes):
    """The same for the same prompt and scope after a restart; another for another scope."""
    ids = [Families(notes).sent(scope, "m", at(second), ()).id for scope, second in ((A, 1), (A, 2), (B, 1))]
    assert ids[0] == ids[1] != ids[2]
    assert all(len(name) == 12 and int(name, 16) for name in ids)


def test_labels_are_few(notes):
    families = Families(notes, most=5)
    made = [families.sent(A, "m", head(prose(n)), ()) for n in range(LABELS + 3)]
    assert [family.label for family in made] == [*(family.id for family in made[:LABELS]), *["other"] * 3]
    again = families.sent(A, "m", head(prose(0)), ())
    assert again is not made[0]
    assert again.label == made[0].label == made[0].id


def test_an_id_is_given_once(families):
    """A family moves on, and its first prompt comes again."""
    first = drifted(families, prose(1, 60), prose(2, 60))
    second = families.sent(A, "m", head(prose(1, 60)), ())
    assert first is not second
    assert len(rows(families)) == 2


# --- what is told ----------------------------------------------------------------------------------------------------


def test_what_rules_changed_and_what_the_backend_had(families):
    family = families.sent(A, "m", at(1), ())
    family.answered(1000, 25, False)
    assert families.sent(A, "m", at(1), ("clock", "tools")) is family
    family.answered(1000, 900, True)
    families.sent(A, "m", at(1), ("clock",))
    family.answered(1000, 950, True)
    (row,) = families.rows()
    assert row["changed"] == {"requests": 2, "by_rule": {"clock": 2, "tools": 1}}
    assert row["upstream"] == {
        "prompt_tokens": 3000, "cached_tokens": 1875, "hit_share": 0.625,
        "before": {"requests": 1, "prompt_tokens": 1000, "cached_tokens": 25, "hit_share": 0.025},
        "after": {"requests": 2, "prompt_tokens": 2000, "cached_tokens": 1850, "hit_share": 0.925},
    }  # fmt: skip
    assert families.summary() == {
        "prompt_tokens": 3000, "cached_tokens": 1875, "hit_share": 0.625, "families": 1, "shared_share": 1,
    }  # fmt: skip


def test_nothing_counted_is_no_share(families):
    assert families.summary() == {
        "prompt_tokens": 0, "cached_tokens": 0, "hit_share": None, "families": 0, "shared_share": None,
    }  # fmt: skip
    families.sent(A, "m", at(1), ())
    (row,) = families.rows()
    assert row["upstream"]["hit_share"] is row["upstream"]["before"]["hit_share"] is row["shared"] is None
    assert row["ttft"] == {"count": 0, "p50": None, "p95": None}


def test_the_shared_share_is_of_all_heads_that_have_one_before(families):
    families.sent(A, "m", head("x" * 100), ())
    families.sent(A, "m", head("x" * 75 + "y" * 25), ())
    families.sent(A, "m", head("x" * 75 + "y" * 25), ())
    assert families.summary()["shared_share"] == 0.875


def test_waits(families):
    family = families.sent(A, "m", at(1), ())
    for number in range(WAITS + 100, 0, -1):
        family.began(float(number))
    assert families.rows()[0]["ttft"] == {"count": WAITS, "p50": 65.0, "p95": 122.0}


def test_the_typical_share_is_the_median_of_late(families):
    """Of the last ones: what was long ago does not count, nor does a single one."""
    texts = prose(1).split("\n")
    for number, place in enumerate([10] * RECENT * 2 + [30] * (RECENT - 1)):
        name = "Anna" if number % 2 else "Bob"
        families.sent(A, "m", head("\n".join([*texts[:place], f"You help {name}", *texts[place:]])), ())
    families.sent(A, "m", head(f"One other.\n{prose(1)}"), ())
    assert families.rows()[0]["shared"]["bytes"] == len("\n".join(texts[:30])) + len("\nYou help ")


def test_what_costs_most_comes_first(families):
    for second in range(3):
        families.sent(A, "small", at(second, prose(2, 10)), ())
        families.sent(A, "large", at(second, prose(3, 60)), ())
        families.sent(A, "equal", head(prose(4, 90)), ())
        families.sent(A, "equal", head(prose(4, 90)), ())
    assert [row["model"] for row in families.rows()] == ["large", "small", "equal"]
    assert [row["model"] for row in families.rows(1)] == ["large"]


def test_little_often_may_cost_more_than_much_once(families):
    for second in range(2):
        families.sent(A, "once", at(second, prose(2, 60)), ())
    for second in range(10):
        families.sent(A, "often", at(second, prose(3, 20)), ())
    assert [row["model"] for row in families.rows()] == ["often", "once"]


def test_the_place_that_costs_most_is_told(families):
    lines = prose(1).split("\n")
    for number in range(10):
        clock = f"It is 2026-03-01 10:00:{number:02}." if number % 3 == 0 else "It is 2026-03-01 10:00:00."
        name = f"You help {'Anna' if number % 2 else 'Bob'}."
        families.sent(A, "m", head("\n".join([lines[0], clock, *lines[1:30], name, *lines[30:]])), ())
    told = families.rows()[0]["divergence"]
    assert (told["kind"], told["seen"]) == ("clock", 5)
    assert told["offset"] == len(lines[0]) + len("\nIt is ")


def test_only_noise_is_shown(families):
    """A name, an address, a document may be anybody's: only where it stands and how long it is is told."""
    secrets = ["Anna Smith, 4 Elm Street", "Ngozi Adichie, 5 Oak Avenue"]
    for secret in secrets:
        families.sent(A, "m", head(f"You help {secret}.\n{LONG}"), ())
    told = families.rows()[0]["divergence"]
    assert (told["kind"], told["rule"], told["span"]) == ("text", None, None)
    assert told["length"] == [len(secret) + 1 for secret in secrets]
    everything = json.dumps(families.rows()) + repr(families) + repr(families.sent(A, "m", head(f"x\n{LONG}"), ()))
    assert not any(word in everything for word in ("Anna", "Smith", "Elm", "Ngozi", *LONG.split()[:20]))


def test_what_is_shown_is_short(families):
    for n in (1, 2):
        families.sent(A, "m", head(f"x-request-id: {str(n) * 500}\n{LONG}"), ())
    told = families.rows()[0]["divergence"]
    assert told["span"] == ["x-request-id: " + str(n) * (LONGEST_SHOWN - 14) for n in (1, 2)]
    assert told["length"] == [515, 515]


def test_what_is_shown_can_be_written(families):
    for n in ("\ud800", "\udfff"):
        families.sent(A, "m\ud800", head(f"x-request-id: {n}\n{LONG}"), ())
    assert orjson.loads(orjson.dumps(families.rows()))[0]["divergence"]["span"] == ["x-request-id: ?\n"] * 2


def test_names_of_nonce_lines_are_the_operators(notes):
    families = Families(notes, names=("x-mine",))
    for n in (1, 2):
        families.sent(A, "m", head(f"x-mine: {n}\n{LONG}"), ())
    assert notes.counted == [("divergence", "nonces")]


# --- bounds ----------------------------------------------------------------------------------------------------------


def held(families):
    return sum(len(block.text) for family in families._families.values() for block in family.head)


def is_in_order(families):
    """Every index knows the families that are there, and no other."""
    known = set(families._families.values())
    assert set(families._heads.values()) == known
    assert set().union(*families._index.values()) == known
    assert set(families._latest.values()) <= known
    assert all(families._index.values())
    assert families._held >= held(families)
    return True


def test_families_are_forgotten_those_first_that_were_asked_longest_ago(notes):
    families = Families(notes, most=3)
    made = [families.sent(A, "m", head(prose(n)), ()) for n in range(3)]
    assert families.sent(A, "m", head(prose(0)), ()) is made[0]
    families.sent(A, "m", head(prose(3)), ())
    assert families.sent(A, "m", head(prose(0)), ()) is made[0]
    assert families.sent(A, "m", head(prose(1)), ()) is not made[1]
    assert len(rows(families)) == 3
    assert is_in_order(families)
    made[1].answered(10, 5, False)
    assert families.summary()["prompt_tokens"] == 10


def test_ten_thousand_prompts_and_models_are_as_many_as_are_kept(families):
    for number in range(3000):
        families.sent(
            A,
            f"m{number % 1000}",
            head(f"{number} is {'abcdefghij'[number % 10] * 9} of prompt {number * number}."),
            (),
        )
    assert len(families._families) == MOST
    assert is_in_order(families)
    assert len(families._index) <= MOST * 40


def test_bytes_are_bounded(notes):
    families = Families(notes, held=100_000)
    for number in range(50):
        families.sent(A, "m", head(prose(number, 100)), ())
        assert families._held <= 100_000
        assert is_in_order(families)
    assert 5 < len(families._families) < 20
    families.sent(A, "m", head(prose(1, 4000)), ())
    assert len(families._families) == 1


def test_of_giant_heads_only_a_beginning_is_held(families):
    text = "漢" * 2 * LONGEST
    families.sent(A, "m", head("Hi. ", text, text), ())
    assert held(families) == LONGEST
    families.sent(A, "n", head(*[text[: LONGEST // 2 - 7]] * 5), ())
    assert held(families) == 2 * LONGEST
    family = families.sent(A, "m", [Block(("messages", n, "content"), f"{n}") for n in range(1000)], ())
    assert held(families) <= 2 * LONGEST + WIDEST * 4
    assert len(family.head) == WIDEST
    model = families.sent(A, "m" * 10**6, head("Hi."), ()).model
    assert len(model) == 256


def test_places_are_bounded(families):
    dice = random.Random(1)
    lines = prose(1, 100).split("\n")
    for _ in range(100):
        place = dice.randrange(100)
        families.sent(
            A, "m", head("\n".join([*lines[:place], f"{dice.random()} words {dice.random()}", *lines[place:]])), ()
        )
    (family,) = families._families.values()
    assert len(family._places) == PLACES


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([A, B]),
            st.sampled_from([*ODD[:-1], "Be kind and brief.", "漢字 and more words"]),
            st.integers(0, 3000),
        ),
        max_size=12,
    )
)
def test_odd_heads_break_nothing(sends):
    families = Families(Notes(), most=3, held=20_000)
    for scope, text, cut in sends:
        families.sent(scope, "m\ud800", head(text[:cut], text[cut:]), ("clock",))
        families.sent(scope, "m\ud800", [], ())
        assert is_in_order(families)
    orjson.dumps(families.rows())
    families.summary()


def test_tools_stand_first(families, notes):
    tools = [tool("zeta", prose(1, 3)), tool("alpha", prose(2, 3))]
    one = families.sent(A, "m", head(LONG, tools=tools), ())
    assert families.sent(A, "m", head(LONG, tools=tools[::-1]), ()) is one
    assert notes.counted == [("divergence", "tools")]
    assert families.rows()[0]["divergence"]["span"] is None
