"""Files of requests, one JSON object a line (what a line is: engine/traffic.py)."""

import sys
from collections.abc import Iterator
from pathlib import Path

from cacheproxy.engine.traffic import BadLine, Line, lines
from cacheproxy.errors import ConfigurationError

SHOWN = 20
"""Lines that are shown at most, where they are told of one by one."""


def requests(file: str) -> Iterator[Line | BadLine]:
    """What each line of `file` is (`-`: standard input); empty lines are passed over. Raises `ConfigurationError`."""
    try:
        stream = sys.stdin.buffer if file == "-" else Path(file).open("rb")  # noqa: SIM115 - closed below
        with stream:
            yield from lines(stream)
    except OSError as error:
        raise ConfigurationError(f"cannot read {file}: {error.strerror}") from None
