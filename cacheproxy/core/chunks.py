"""A long text in chunks of whole lines, so that what was found in a chunk once need not be looked for again: of two
successive prompts most chunks are equal. Pure."""

SIZE = 1024
"""Characters after which a chunk ends with its line."""
KEPT = 16 * SIZE
"""Characters of the longest chunk that is worth remembering."""
REMEMBERED = 2048
"""Chunks that are remembered by each who looks for something."""


def chunks(text: str) -> list[tuple[int, str]]:
    """Where each chunk begins, and its text. None of them is empty; together they are `text`."""
    found = []
    at = 0
    while at < len(text):
        end = text.find("\n", at + SIZE) + 1 or len(text)
        found.append((at, text[at:end]))
        at = end
    return found
