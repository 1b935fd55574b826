"""New versions of knowledge bases: what is read of them, what follows, and which answers they make wrong."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core import knowledge, registry
from cacheproxy.core.knowledge import BadPublication, Course, Known, Publication
from tests.examples import tries
from tests.stores.entries import entry

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
EVENT = {
    "specversion": "1.0", "type": "kb.version.published", "source": "/index", "id": "7", "subject": "handbook",
    "data": {"version": "v2", "sequence": 2, "changed_documents": ["faq-7"]},
}  # fmt: skip
V2 = Publication("handbook", "v2", frozenset({"faq-7"}), 2, ("/index", "7"))


def test_an_event_and_a_call_say_the_same():
    assert knowledge.read_event(EVENT) == V2
    told = knowledge.read_put("handbook", EVENT["data"])
    assert told == Publication("handbook", "v2", frozenset({"faq-7"}), 2)
    assert knowledge.read_put("handbook", {"version": 3}).version == "3"


def test_an_event_of_another_type_means_nothing_here():
    assert knowledge.read_event({**EVENT, "type": "kb.created"}) is None


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"specversion": "0.3"}, "specversion"),
        ({"specversion": 1}, "specversion"),
        ({"id": ""}, "id"),
        ({"source": None}, "source"),
        ({"type": 5}, "type"),
        ({"subject": None}, "subject"),
        ({"subject": ""}, "name"),
        ({"subject": "\ud800"}, "name"),
        ({"subject": "x" * 16_385}, "name"),
        ({"id": "x" * 1025}, "id"),
        ({"data": None}, "data"),
        ({"data": ["v2"]}, "data"),
        ({"data": {}}, "version"),
        ({"data": {"version": ""}}, "version"),
        ({"data": {"version": True}}, "version"),
        ({"data": {"version": "v2", "sequence": -1}}, "sequence"),
        ({"data": {"version": "v2", "sequence": True}}, "sequence"),
        ({"data": {"version": "v2", "sequence": "2"}}, "sequence"),
        ({"data": {"version": "v2", "sequence": 2**53}}, "sequence"),
        ({"data": {"version": "v2", "changed_documents": "faq-7"}}, "changed_documents"),
        ({"data": {"version": "v2", "changed_documents": [7]}}, "changed_documents"),
        ({"data": {"version": "v2", "changed_documents": ["x"] * 10_001}}, "changed_documents"),
    ],
)
def test_what_is_wrong_is_named(change, field):
    told = knowledge.read_event({**EVENT, **change})
    assert isinstance(told, BadPublication)
    assert told.name == field


@pytest.mark.parametrize(
    ("document", "field"), [(None, "body"), ([], "body"), ({"version": "v", "x": 1}, "x"), ({}, "version")]
)
def test_what_is_wrong_with_a_call_is_named(document, field):
    assert knowledge.read_put("handbook", document).name == field


KNOWN = Known("v2", 2, 1.0, (("/index", "7"),))


@pytest.mark.parametrize(
    ("known", "told", "course"),
    [
        (None, V2, Course.PUBLISHED),
        (KNOWN, V2, Course.REPEATED),
        (KNOWN, Publication("handbook", "v1", None, 1, ("/index", "6")), Course.OUTDATED),
        (KNOWN, Publication("handbook", "v3", None, 3, ("/index", "8")), Course.PUBLISHED),
        (KNOWN, Publication("handbook", "v3"), Course.PUBLISHED),
        (KNOWN, Publication("handbook", "v2"), Course.UNCHANGED),
        (KNOWN, Publication("handbook", "v2", frozenset()), Course.UNCHANGED),
        (KNOWN, Publication("handbook", "v2", frozenset({"faq-8"})), Course.PUBLISHED),
        (KNOWN, Publication("handbook", "v2b", None, 2), Course.PUBLISHED),
        (Known("v2", 2, 1.0, settled=False), Publication("handbook", "v2"), Course.PUBLISHED),
        (Known("v2", None, 1.0), Publication("handbook", "v1", None, 1), Course.PUBLISHED),
    ],
)
def test_what_follows(known, told, course):
    assert knowledge.course(known, told) is course


def test_what_is_known_after_it():
    after = knowledge.after(KNOWN, Publication("handbook", "v3", None, None, ("/index", "8")), 5.0)
    assert after == Known("v3", 2, 5.0, (("/index", "7"), ("/index", "8")), settled=False, whole=2)
    many = Known("v", 1, 0.0, tuple(("s", str(n)) for n in range(knowledge.EVENTS)))
    assert knowledge.after(many, V2, 0.0).events[-2:] == (("s", str(knowledge.EVENTS - 1)), ("/index", "7"))
    assert len(knowledge.after(many, V2, 0.0).events) == knowledge.EVENTS


@pytest.mark.parametrize(
    ("bases", "tags", "wrong"),
    [
        (("handbook",), (), True),
        (("handbook@v1",), (), True),
        (("handbook",), ("doc:faq-7", "doc:faq-8"), True),
        (("handbook",), ("doc:faq-8",), False),
        (("handbook",), ("red",), True),
        (("other",), ("doc:faq-7",), False),
        ((), (), False),
    ],
)
def test_which_answers_it_makes_wrong(bases, tags, wrong):
    assert knowledge.selector(V2).means(replace(entry(1), knowledge=bases, tags=tags), 0.0) is wrong


def test_where_the_documents_are_not_known_all_answers_are_wrong():
    told = knowledge.selector(Publication("handbook", "v2"))
    assert told.means(replace(entry(1), knowledge=("handbook",), tags=("doc:faq-8",)), 0.0)


@pytest.mark.parametrize(("settled", "wrong"), [(True, False), (False, True)])
def test_after_a_version_that_was_left_off_half_way_all_answers_are_wrong(settled, wrong):
    """Its documents are not known any more, and its answers may still be there."""
    before = Known("v1", 1, 0.0, settled=settled)
    other = replace(entry(1), knowledge=("handbook",), tags=("doc:faq-8",))
    assert knowledge.selector(V2, before).means(other, 0.0) is wrong


SOME = frozenset({"faq-8"})


@pytest.mark.parametrize(
    ("known", "told", "whole"),
    [
        (None, Publication("handbook", "v3", None, 3), 3),
        (None, Publication("handbook", "v3", SOME, 3), None),
        (None, Publication("handbook", "v3"), None),
        (Known("v2", 2, 0.0, whole=1), Publication("handbook", "v3", SOME, 3), 1),
        (Known("v2", 2, 0.0, whole=1), Publication("handbook", "v3", None, 3), 3),
        (Known("v2", 2, 0.0, whole=1), Publication("handbook", "v3"), 2),
        (Known("v2", 2, 0.0, whole=1, settled=False), Publication("handbook", "v3", SOME, 3), 3),
    ],
)
def test_up_to_which_version_nothing_is_left(known, told, whole):
    assert knowledge.after(known, told, 0.0).whole == whole


@pytest.mark.parametrize(
    ("known", "missing", "whole"),
    [
        (Known("v9", 9, 0.0, whole=9), False, 9),
        (Known("v9", 9, 0.0, whole=5), False, 5),
        (Known("v9", 9, 0.0, whole=4), True, 4),
        (Known("v9", 9, 0.0), True, None),
        (Known("v9", 9, 0.0, whole=9, settled=False), True, 9),
    ],
)
def test_what_a_version_made_wrong_that_came_late(known, missing, whole):
    """Of those that came first only the documents fell that they changed themselves."""
    told = Publication("handbook", "v5", SOME, 5, ("/index", "5"))
    assert knowledge.is_missing(known, told) is missing
    then = knowledge.made_up(known, told)
    assert (then.version, then.sequence, then.whole, then.settled) == ("v9", 9, whole, True)
    assert knowledge.course(then, told) is Course.REPEATED
    assert knowledge.made_up(known, replace(told, documents=None)).whole == 9


def test_versions_that_are_stated():
    assert knowledge.stated(("a", "b@v1.2%20%7Bx%7D", "c%40d@2")) == {"b": "v1.2 {x}", "c@d": "2"}


@given(
    TEXT,
    st.builds(
        Known, TEXT, st.none() | st.integers(0, 2**53 - 1), st.floats(0, 2e9),
        st.lists(st.tuples(TEXT, TEXT), max_size=3).map(tuple), st.booleans(), st.none() | st.integers(0, 2**53 - 1),
    ),
)  # fmt: skip
@tries(100)
def test_what_is_read_is_what_was_written(name, known):
    line = registry.encode(name, known)
    assert b"\n" not in line
    assert registry.decode(line) == (name, known)


def test_a_line_of_an_earlier_release_is_read():
    line = registry.encode("n", replace(KNOWN, whole=2)).replace(b',"whole":2', b"")
    assert registry.decode(line) == ("n", KNOWN)


@pytest.mark.parametrize("line", [b"", b"{}", b"[]", b"null", registry.encode("n", KNOWN)[:-1]])
def test_another_line_is_nothing(line):
    assert registry.decode(line) is None
