"""What a replay found, as a picture: the chart of chart.py as a PNG, drawn without a library (ISO/IEC 15948)."""

import struct
import zlib
from collections.abc import Sequence

from cacheproxy.commands.chart import COLOURS, shares

WIDTH, HEIGHT = 760, 280
LEFT, TOP, WIDE, HIGH = 44, 12, 700, 224
"""The frame that the bars stand in."""
_PAPER, _LINE, _INK = b"\xff\xff\xff", b"\xcb\xd5\xe0", b"\x4a\x55\x68"
_GLYPHS = {
    "0": "3e5149453e", "1": "00427f4000", "2": "4261514946", "3": "2141454b31", "4": "1814127f10", "5": "2745454539",
    "6": "3c4a494930", "7": "0171090503", "8": "3649494936", "9": "064949291e", "%": "2313086462", "a": "2054545478",
    "c": "3844444420", "e": "3854545418", "i": "00447d4000", "m": "7c04180478", "n": "7c08040478", "s": "4854545420",
    "t": "043f444020", "x": "4428102844", " ": "0000000000",
}  # fmt: skip
"""Letters of 5 by 7 dots: a column a byte, the lowest bit on top."""


class _Canvas:
    """Dots, three bytes each."""

    def __init__(self) -> None:
        self.dots = [bytearray(_PAPER * WIDTH) for _ in range(HEIGHT)]

    def fill(self, left: int, top: int, right: int, bottom: int, colour: bytes) -> None:
        """The dots from `left` and `top` on, up to `right` and `bottom`, which are left out."""
        for row in self.dots[top:bottom]:
            row[3 * left : 3 * right] = colour * (right - left)

    def write(self, left: int, top: int, text: str) -> None:
        for at, letter in enumerate(text):
            for column, bits in enumerate(bytes.fromhex(_GLYPHS[letter])):
                for line in range(7):
                    if bits >> line & 1:
                        x, y = left + 6 * at + column, top + line
                        self.fill(x, y, x + 1, y + 1, _INK)


def png(course: Sequence[str]) -> bytes:
    """The share of requests that each layer answers, along the log."""
    canvas = _Canvas()
    for quarter in range(5):
        y, percent = TOP + HIGH * quarter // 4, f"{100 - 25 * quarter}%"
        canvas.fill(LEFT, y, LEFT + WIDE, y + 1, _LINE)
        canvas.write(LEFT - 6 - 6 * len(percent), y - 3, percent)
    parts = shares(course)
    for at, part in enumerate(parts):
        left, right, bottom = LEFT + WIDE * at // len(parts), LEFT + WIDE * (at + 1) // len(parts), TOP + HIGH
        reached = 0.0
        for layer, colour in COLOURS.items():
            reached += part[layer]
            top = TOP + HIGH - round(HIGH * reached)
            canvas.fill(left, top, right, bottom, bytes.fromhex(colour[1:]))
            bottom = top
    for at, (layer, colour) in enumerate(COLOURS.items()):
        left = LEFT + 110 * at
        canvas.fill(left, HEIGHT - 24, left + 10, HEIGHT - 14, bytes.fromhex(colour[1:]))
        canvas.write(left + 15, HEIGHT - 22, layer)
    return _file(canvas.dots)


def _file(dots: Sequence[bytearray]) -> bytes:
    head = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    lines = b"".join(b"\0" + row for row in dots)
    return (
        b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + _chunk(b"IDAT", zlib.compress(lines, 9)) + _chunk(b"IEND", b"")
    )


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
