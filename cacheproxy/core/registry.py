"""What is known of a knowledge base as a line: what is read is what was written."""

import orjson

from cacheproxy.core.knowledge import Known


def encode(name: str, known: Known) -> bytes:
    """The line, one JSON object."""
    return orjson.dumps(
        {
            "name": name,
            "version": known.version,
            "sequence": known.sequence,
            "published_at": known.published_at,
            "events": known.events,
            "settled": known.settled,
            "whole": known.whole,
        }
    )


def decode(line: bytes) -> tuple[str, Known] | None:
    """The name and what is known of it; None if the line says something else."""
    try:
        told = orjson.loads(line)
        name, version, sequence, at = (told[key] for key in ("name", "version", "sequence", "published_at"))
        settled, whole = told["settled"], told.get("whole")
        events = tuple((source, identity) for source, identity in told["events"])
    except (ValueError, KeyError, TypeError):
        return None
    texts = (name, version, *(text for event in events for text in event))
    if not all(isinstance(text, str) for text in texts) or type(at) not in (int, float) or type(settled) is not bool:
        return None
    if type(sequence) not in (int, type(None)) or type(whole) not in (int, type(None)):
        return None
    return name, Known(version, sequence, float(at), events, settled, whole)
