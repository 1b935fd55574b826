"""Durations and sizes as people write them. Pure; a text says what is wrong."""

import re

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_SIZES = {
    "": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30,
    "TIB": 2**40,
}  # fmt: skip
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?\s*")
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")


def duration(value: object) -> float | str:
    """Seconds; a text if `value` is none."""
    if isinstance(value, str) and (found := _DURATION.fullmatch(value)):
        return float(found.group(1)) * _UNITS[found.group(2) or "s"]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "must be a number of seconds, or like 250ms, 30s, 5m, 1h"
    return float(value)


def size(value: object) -> int | str:
    """Bytes; a text if `value` is none."""
    if isinstance(value, str) and (found := _SIZE.fullmatch(value)) and found.group(2).upper() in _SIZES:
        return int(float(found.group(1)) * _SIZES[found.group(2).upper()])
    if isinstance(value, bool) or not isinstance(value, int):
        return "must be a number of bytes, or like 64KiB, 64MiB, 1GiB"
    return value
