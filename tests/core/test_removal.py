"""Which answers a removal means, how one is asked for, and what it forbids to those on their way."""

import pytest

from cacheproxy.core import key
from cacheproxy.core.removal import REMEMBERED, BadOrder, Order, Removal, Removals, Selector, read
from tests.stores.entries import entry, key_of

NOW = 2000.0


def made(number: int = 1, **facts):
    from dataclasses import replace

    return replace(entry(number), **facts)


MEANT = {
    "one tag of several": ({"tags": ["x", "faq"]}, {"tags": ("faq", "y")}),
    "a tag as a text": ({"tags": "faq"}, {"tags": ("faq",)}),
    "a knowledge base in any version": ({"kb": "handbook"}, {"knowledge": ("handbook@7", "b")}),
    "a knowledge base without version": ({"kb": "handbook"}, {"knowledge": ("handbook",)}),
    "a knowledge base in this version": ({"kb": "handbook@7"}, {"knowledge": ("handbook@7",)}),
    "a knowledge base with signs in its name": ({"kb": "a@b, c%"}, {"knowledge": ("a%40b%2C%20c%25@7",)}),
    "such a one in a version": ({"kb": "a@b, c%@7@8"}, {"knowledge": ("a%40b%2C%20c%25@7%408",)}),
    "a model": ({"model": "m"}, {}),
    "a namespace": ({"namespace": "names"}, {}),
    "a namespace with a NUL in it": ({"namespace": "a\0b"}, {"namespace": "a\0\0b"}),
    "an id": ({"entry_ids": [key.entry_id(key_of(1))]}, {}),
    "an age": ({"older_than": 999}, {"stored_at": 1000.0}),
    "a document that changed": ({"changed_documents": ["a", "b"]}, {"tags": ("doc:b", "doc:c")}),
    "what names no document": ({"changed_documents": "a"}, {"tags": ("a", "x")}),
    "a family of prompts": ({"prefix": ["0a1b", "0a1c"]}, {"prefix": "0a1b"}),
    "whose it is": ({"scope": ["f" * 32, "01" * 16]}, {"owner": b"\1" * 16}),
    "with which credential": ({"scope": "02" * 16}, {"credential": b"\2" * 16}),
    "two things": ({"model": "m", "tags": "faq"}, {"tags": ("faq",)}),
    "any text": ({"tags": "a, b@c%\n☃"}, {"tags": ("a, b@c%\n☃",)}),
}
NOT_MEANT = {
    "another tag": ({"tags": "faq"}, {"tags": ("faq2",)}),
    "no tag": ({"tags": "faq"}, {}),
    "another version": ({"kb": "handbook@7"}, {"knowledge": ("handbook@8",)}),
    "a version when none was told": ({"kb": "handbook@7"}, {"knowledge": ("handbook",)}),
    "a name up to a sign": ({"kb": "a"}, {"knowledge": ("a%40b@7",)}),
    "a name as it is encoded": ({"kb": "a%40b"}, {"knowledge": ("a%40b@7",)}),
    "a longer name": ({"kb": "hand"}, {"knowledge": ("handbook",)}),
    "another model": ({"model": "M"}, {}),
    "another namespace": ({"namespace": ""}, {}),
    "another id": ({"entry_ids": key.entry_id(key_of(2))}, {}),
    "as old as that": ({"older_than": 1000}, {"stored_at": 1000.0}),
    "other documents": ({"changed_documents": "a"}, {"tags": ("doc:b", "a", "doc:aa")}),
    "another family": ({"prefix": "0a1b"}, {"prefix": "0a1b2"}),
    "of no family": ({"prefix": "0a1b"}, {}),
    "somebody else's": ({"scope": "01" * 16}, {"owner": b"\2" * 16}),
    "whose, and another model": ({"scope": "01" * 16, "model": "n"}, {"owner": b"\1" * 16}),
    "one of two things": ({"model": "m", "tags": "faq"}, {"tags": ("x",)}),
}


@pytest.mark.parametrize("name", MEANT)
def test_meant(name):
    given, facts = MEANT[name]
    order = read({"selector": given})
    assert isinstance(order, Order)
    assert order.removal is Removal.HARD
    assert order.selector.means(made(**facts), NOW)


@pytest.mark.parametrize("name", NOT_MEANT)
def test_not_meant(name):
    given, facts = NOT_MEANT[name]
    order = read({"selector": given})
    assert isinstance(order, Order)
    assert not order.selector.means(made(**facts), NOW)


def test_everything_has_to_be_confirmed():
    assert read({"selector": {"all": True}}) == BadOrder(
        "confirm", '"purge all", because the selector means everything'
    )
    order = read({"selector": {"all": True}, "confirm": "purge all", "mode": "soft"})
    assert order == Order(Selector(everything=True), Removal.SOFT)
    assert order.selector.means(made(), NOW)
    assert read({"selector": {"all": True}, "dry_run": True}) == Order(Selector(everything=True), Removal.NONE)


WRONG = [
    (None, "body"), ([], "body"), ("x", "body"), ({}, "selector"), ({"selector": {}}, "selector"),
    ({"selector": []}, "selector"), ({"selector": {"all": False}}, "selector.all"),
    ({"selector": {"all": True, "tags": "x"}, "confirm": "purge all"}, "selector.all"),
    ({"selector": {"tag": "x"}}, "selector.tag"), ({"selector": {"tags": []}}, "selector.tags"),
    ({"selector": {"tags": [1]}}, "selector.tags"), ({"selector": {"tags": None}}, "selector.tags"),
    ({"selector": {"tags": [""]}}, "selector.tags"), ({"selector": {"model": 1}}, "selector.model"),
    ({"selector": {"older_than": -1}}, "selector.older_than"),
    ({"selector": {"older_than": True}}, "selector.older_than"),
    ({"selector": {"older_than": "1h"}}, "selector.older_than"),
    ({"selector": {"everything": True}}, "selector.everything"),
    ({"selector": {"model": "m"}, "mode": "gentle"}, "mode"), ({"selector": {"model": "m"}, "mode": None}, "mode"),
    ({"selector": {"model": "m"}, "mode": []}, "mode"), ({"selector": {"model": "m"}, "dry_run": 1}, "dry_run"),
    ({"selector": {"model": "m"}, "dryrun": True}, "dryrun"), ({"selector": {"model": "m"}, "wait": 1}, "wait"),
    ({"selector": {"model": "m"}, "wait": "yes"}, "wait"), ({"selector": {"prefix": ""}}, "selector.prefix"),
    ({"selector": {"prefix": [None]}}, "selector.prefix"), ({"selector": {"scope": "0" * 31}}, "selector.scope"),
    ({"selector": {"scope": "A" * 32}}, "selector.scope"), ({"selector": {"scope": []}}, "selector.scope"),
    ({"selector": {"scope": ["0" * 32, "x" * 32]}}, "selector.scope"),
    ({"selector": {"changed_documents": [""]}}, "selector.changed_documents"),
]  # fmt: skip


@pytest.mark.parametrize(("document", "name"), WRONG)
def test_an_order_that_is_none_says_where(document, name):
    """An operator who misspells a field must not purge more than was meant, or less."""
    bad = read(document)
    assert isinstance(bad, BadOrder)
    assert bad.name == name
    assert bad.expected


@pytest.mark.parametrize(
    ("given", "wait"), [({}, None), ({"wait": None}, None), ({"wait": True}, True), ({"wait": False}, False)]
)
def test_whether_to_wait_is_left_open_told_or_denied(given, wait):
    order = read({"selector": {"prefix": "0a1b"}, **given})
    assert isinstance(order, Order)
    assert order.wait is wait


def test_what_is_on_its_way_does_not_stand_after_a_removal_that_means_it():
    removals = Removals()
    before = removals.epoch
    assert removals.stands(made(), before)
    removals.add(Selector(model="other"), NOW)
    assert removals.stands(made(), before)
    removals.add(Selector(model="m"), NOW)
    assert not removals.stands(made(), before)
    assert not removals.stands(made(), 1)
    assert removals.stands(made(), removals.epoch)
    assert removals.stands(made(model="n"), before)


def test_what_was_asked_for_before_all_that_is_remembered_does_not_stand():
    removals = Removals()
    for _ in range(REMEMBERED):
        removals.add(Selector(model="other"), NOW)
    assert removals.stands(made(), 0)
    removals.add(Selector(model="other"), NOW)
    assert not removals.stands(made(), 0)
    assert removals.stands(made(), 1)
