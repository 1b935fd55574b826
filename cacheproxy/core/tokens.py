"""The tokens that a usage object counts, under the names that the operations have for them."""

from typing import Any

_NAMES = (("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens"))


def tokens_of(usage: Any) -> tuple[int, int]:
    """Tokens read and tokens written; 0 where it does not say. Where only a total is told, the rest of it was read."""
    if not isinstance(usage, dict):
        return 0, 0
    read, written = (next((usage[name] for name in names if usage.get(name) is not None), None) for names in _NAMES)
    if read is None:
        return max(0, _count(usage.get("total_tokens")) - _count(written)), _count(written)
    return _count(read), _count(written)


def _count(value: Any) -> int:
    return value if type(value) is int and 0 <= value < 2**53 else 0
