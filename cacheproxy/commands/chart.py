"""What a replay found, as a page: one file that asks nobody for anything."""

from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import Any

WIDTH, HEIGHT = 720, 240
MOST_PARTS = 120
COLOURS = {"exact": "#2b6cb0", "semantic": "#805ad5"}
_STYLE = (
    "body{font:15px system-ui,sans-serif;margin:2rem auto;max-width:760px;color:#1a202c}"
    "table{border-collapse:collapse}td,th{padding:.2rem .8rem .2rem 0;text-align:left}td.n{text-align:right}"
    "svg{width:100%;height:auto}text{font-size:11px;fill:#4a5568}"
)


def page(told: dict[str, Any], course: Sequence[str]) -> str:
    """HTML of what was told, and of the layers in the order of the requests."""
    rows = [
        ("requests", told["requests"]), ("answered by the exact layer", _share(told["exact"])),
        ("answered by meaning", _share(told["semantic"]) if told["semantic"] else "not looked at"),
        ("tokens spared", f"{told['tokens']['saved']:,} of {told['tokens']['of']:,}"),
        ("seconds spared", f"{told['seconds']['saved']:,} of {told['seconds']['of']:,}"),
        *((f"not served: {reason}", count) for reason, count in (told["misses"] | told["bypasses"]).items()),
    ]  # fmt: skip
    table = "".join(f"<tr><th>{escape(str(n))}</th><td class=n>{escape(str(v))}</td></tr>" for n, v in rows)
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>cacheproxy replay</title><style>{_STYLE}</style>"
        f"<h1>What would have been answered from the cache</h1>{drawing(course)}<table>{table}</table></html>\n"
    )


def shares(course: Sequence[str]) -> list[dict[str, float]]:
    """The share of each layer in successive parts of the log, `MOST_PARTS` at most."""
    parts = min(MOST_PARTS, len(course)) or 1
    bounds = [round(number * len(course) / parts) for number in range(parts + 1)]
    pieces = [course[a:b] for a, b in pairwise(bounds)]
    return [{layer: piece.count(layer) / (len(piece) or 1) for layer in COLOURS} for piece in pieces]


def drawing(course: Sequence[str]) -> str:
    """The share of requests that each layer answers, along the log, as SVG."""
    found, bars = shares(course), []
    parts = len(found)
    for at, part in enumerate(found):
        top = float(HEIGHT)
        for layer, colour in COLOURS.items():
            height = HEIGHT * part[layer]
            top -= height
            if height:
                bars.append(
                    f'<rect x="{40 + at * WIDTH / parts:.1f}" y="{10 + top:.1f}" width="{WIDTH / parts:.1f}" '
                    f'height="{height:.1f}" fill="{colour}"/>'
                )
    lines = "".join(
        f'<path d="M40 {10 + HEIGHT * part:.0f}h{WIDTH}" stroke="#cbd5e0"/>'
        f'<text x="34" y="{14 + HEIGHT * part:.0f}" text-anchor="end">{100 - 100 * part:.0f}%</text>'
        for part in (0.0, 0.25, 0.5, 0.75, 1.0)
    )
    legend = "".join(
        f'<rect x="{40 + 110 * at}" y="{HEIGHT + 22}" width="10" height="10" fill="{colour}"/>'
        f'<text x="{55 + 110 * at}" y="{HEIGHT + 31}">{layer}</text>'
        for at, (layer, colour) in enumerate(COLOURS.items())
    )
    return (
        f'<svg viewBox="0 0 {WIDTH + 60} {HEIGHT + 40}" role="img" aria-label="share of answers from the cache">'
        f"{lines}{''.join(bars)}{legend}</svg>"
    )


def _share(layer: dict[str, Any]) -> str:
    return f"{layer['hits']:,} ({layer['rate']:.1%})"
