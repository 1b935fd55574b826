"""Which threshold keeps the share of wrong hits within a target, by what was seen of labelled pairs. Pure.

A threshold belongs to one embedder: what was seen of another says nothing. Nothing is promised that the count of pairs
does not carry: it is the upper bound of the share of wrong hits that has to be within the target.
"""

import json
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cacheproxy.core import calibrated, estimate
from cacheproxy.core.model import Identity

STEPS = tuple(number / 200 for number in range(100, 200))
"""The thresholds that are looked at: from 0.5 up, 0.005 apart."""
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Scored:
    """A labelled pair. `similarity`: None if one of the two has no vector; `passes`: what is looked at beside the
    similarity has no objection."""

    same: bool
    similarity: float | None
    passes: bool


@dataclass(frozen=True, slots=True)
class Point:
    """What is served from `threshold` on: how many, and how many of those are wrong."""

    threshold: float
    served: int
    wrong: int

    def bound(self, confidence: float = CONFIDENCE) -> float:
        """The share of wrong hits that is not exceeded, with this confidence."""
        return estimate.upper(self.wrong, self.served, confidence)


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was seen of an embedder, lowest threshold first."""

    embedder: Identity
    points: tuple[Point, ...]

    def threshold_for(self, max_error: float, confidence: float = CONFIDENCE) -> float | None:
        """The lowest threshold from which on no more than this share of hits is wrong; None if none is known."""
        chosen = choose(self.points, max_error, confidence)
        return None if chosen is None else chosen.threshold


SHIPPED = Calibration(
    Identity(calibrated.NAME, calibrated.REVISION, calibrated.DIM), tuple(Point(*row) for row in calibrated.POINTS)
)
"""Of the default embedder, with the default guards."""


def curve(scored: Iterable[Scored], thresholds: Sequence[float] = STEPS) -> tuple[Point, ...]:
    """What each threshold would serve."""
    rows = [one for one in scored if one.passes and one.similarity is not None]
    right, wrong = (sorted(one.similarity or 0.0 for one in rows if one.same is same) for same in (True, False))
    points = []
    for threshold in thresholds:
        bad = len(wrong) - bisect_left(wrong, threshold)
        points.append(Point(threshold, len(right) - bisect_left(right, threshold) + bad, bad))
    return tuple(points)


def choose(points: Iterable[Point], max_error: float, confidence: float = CONFIDENCE) -> Point | None:
    """The point of the lowest threshold whose upper bound is within `max_error`; None if there is none."""
    within = (point for point in points if point.bound(confidence) <= max_error)
    return min(within, key=lambda point: point.threshold, default=None)


def threshold_for(
    embedder: Identity, max_error: float, calibration: Calibration = SHIPPED, confidence: float = CONFIDENCE
) -> float | None:
    """The lowest threshold for this embedder that keeps the share of wrong hits within `max_error`. None if
    `calibration` is not of this embedder, or knows none."""
    return calibration.threshold_for(max_error, confidence) if is_of(calibration, embedder) else None


def is_of(calibration: Calibration, embedder: Identity) -> bool:
    """Whether it was made with this embedder. Of what one of the two does not say nothing is compared."""
    said, asked = asdict(calibration.embedder), asdict(embedder)
    if not (said["revision"] and asked["revision"]):
        said["revision"] = asked["revision"]
    return said == asked


def read(data: bytes) -> Calibration:
    """A calibration as `written`, also within what ``cacheproxy tune --json`` prints. Raises `ValueError` with what is
    wrong about it."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise ValueError("not valid JSON") from None
    if not isinstance(document, dict) or not isinstance(document.get("embedder"), dict):
        raise ValueError("not a calibration: `embedder` is missing (`cacheproxy tune FILE --json` makes one)")
    rows = document.get("points")
    if not isinstance(rows, list) or not rows:
        raise ValueError("not a calibration: `points` is missing or empty")
    points = [_point(number, row) for number, row in enumerate(rows, 1)]
    return Calibration(_identity(document["embedder"]), tuple(sorted(points, key=lambda point: point.threshold)))


def written(calibration: Calibration) -> dict[str, Any]:
    """`calibration` as plain data, which `read` reads."""
    return {"embedder": asdict(calibration.embedder), "points": [asdict(point) for point in calibration.points]}


def _identity(told: dict[str, Any]) -> Identity:
    names = {name: told.get(name) for name in ("name", "revision", "pooling", "prefix", "precision")}
    for name, value in names.items():
        if not isinstance(value, str):
            raise ValueError(f"`embedder.{name}` must be text")
    dim = told.get("dim")
    if not isinstance(dim, int) or isinstance(dim, bool) or dim < 1:
        raise ValueError("`embedder.dim` must be a whole number above 0")
    return Identity(dim=dim, **{name: str(value) for name, value in names.items()})


def _point(number: int, row: object) -> Point:
    told = row if isinstance(row, dict) else {}
    threshold = told.get("threshold")
    if not isinstance(threshold, int | float) or isinstance(threshold, bool) or not 0 <= threshold <= 1:
        raise ValueError(f"point {number}: `threshold` must be a number between 0 and 1")
    served, wrong = (_count(number, name, told.get(name)) for name in ("served", "wrong"))
    if wrong > served:
        raise ValueError(f"point {number}: more are wrong than are served")
    return Point(float(threshold), served, wrong)


def _count(number: int, name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"point {number}: `{name}` must be a whole number, not below 0")
    return value
