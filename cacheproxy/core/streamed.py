"""An event as the fields of an entry of a stream: whole, as JSON in the field ``event``, or each attribute of it a
field, ``data`` as JSON."""

from collections.abc import Mapping

import orjson

from cacheproxy.core import knowledge
from cacheproxy.core.knowledge import BadPublication, Publication

WHOLE = b"event"


def read(fields: Mapping[bytes, bytes]) -> Publication | BadPublication | None:
    """What it says; None if it is of a type that means nothing here."""
    try:
        if WHOLE in fields:
            event = orjson.loads(fields[WHOLE])
        else:
            event = {name.decode(): value.decode() for name, value in fields.items()}
            if "data" in event:
                event["data"] = orjson.loads(event["data"])
    except ValueError:
        return BadPublication(WHOLE.decode(), "JSON, or the attributes one by one with data in JSON")
    if not isinstance(event, dict):
        return BadPublication(WHOLE.decode(), "a CloudEvent")
    return knowledge.read_event(event)


def place(identity: bytes) -> tuple[int, int]:
    """Where an id stands in the order of its stream. Raises `ValueError` if it is none."""
    time, _, number = identity.partition(b"-")
    return int(time), int(number or b"0")
