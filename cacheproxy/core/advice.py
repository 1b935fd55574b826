"""What ``tune`` tells of labelled pairs: a table by threshold, and the threshold for a wanted share of wrong hits; as
data and as lines for people. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from cacheproxy.core import calibration, estimate
from cacheproxy.core.calibration import Point, Scored
from cacheproxy.core.model import Identity


def advice(
    scored: Sequence[Scored], embedder: Identity | None, max_error: float, confidence: float, unlabelled: int = 0
) -> dict[str, Any]:
    """`ok`: some threshold keeps the share of wrong hits within `max_error`, as far as these pairs can tell.

    `embedder`: None if the similarities come from a log; `unlabelled`: lines of it of which nobody has said whether
    they are the same question."""
    points = calibration.curve(scored)
    chosen = calibration.choose(points, max_error, confidence)
    same = sum(one.same for one in scored)
    return {
        "ok": chosen is not None,
        "threshold": None if chosen is None else chosen.threshold,
        "why": _why_not(points, max_error, confidence) if chosen is None else _why(chosen, max_error, confidence),
        "max_error": max_error,
        "confidence": confidence,
        "embedder": None if embedder is None else asdict(embedder),
        "pairs": len(scored),
        "same": same,
        "not_same": len(scored) - same,
        "unlabelled": unlabelled,
        "without_vector": sum(one.similarity is None for one in scored),
        "points": [_row(point, same, confidence) for point in points],
    }


def lines(told: dict[str, Any]) -> Iterator[str]:
    """What `advice` tells, in lines."""
    embedder = told["embedder"]
    yield f"{told['pairs']} pairs, {told['same']} of them the same question" + (
        f"; {told['without_vector']} cannot be embedded and are never served" if told["without_vector"] else ""
    )
    if told["unlabelled"]:
        count = told["unlabelled"]
        yield f"{count} line{' of the log has' if count == 1 else 's of the log have'} no `same`, and say nothing"
    if embedder is not None:
        yield f"embedder: {embedder['name']} {embedder['revision']} ({embedder['dim']} dimensions)".replace("  ", " ")
    yield ""
    yield f"threshold  recall  served  wrong  wrong share ({told['confidence']:.0%} interval)"
    for row in _shown(told["points"], told["threshold"]):
        mark = "  <" if row["threshold"] == told["threshold"] else ""
        recall = "     -" if row["recall"] is None else f"{row['recall']:6.1%}"
        share = "none served" if row["error"] is None else f"{row['error']:.2%} ({row['low']:.2%} to {row['high']:.2%})"
        yield f"{row['threshold']:9.3f}  {recall}  {row['served']:6}  {row['wrong']:5}  {share}{mark}"
    yield ""
    yield f"threshold {told['threshold']:.3f}: {told['why']}" if told["ok"] else f"no threshold: {told['why']}"


def _row(point: Point, same: int, confidence: float) -> dict[str, Any]:
    low, high = estimate.interval(point.wrong, point.served, confidence)
    return {
        **asdict(point),
        "recall": (point.served - point.wrong) / same if same else None,
        "error": point.wrong / point.served if point.served else None,
        "low": low,
        "high": high,
    }


def _shown(rows: Sequence[dict[str, Any]], chosen: float | None) -> Iterable[dict[str, Any]]:
    """Each hundredth at which less is served than below, and the chosen one."""
    shown: list[dict[str, Any]] = []
    for row in reversed(rows):
        hundredth = abs(row["threshold"] * 100 - round(row["threshold"] * 100)) < 1e-6
        counts = row["served"], row["wrong"]
        differs = not shown or counts != (shown[-1]["served"], shown[-1]["wrong"])
        if row["threshold"] == chosen or (hundredth and differs):
            shown.append(row)
    return shown[::-1]


def _why(point: Point, max_error: float, confidence: float) -> str:
    return (
        f"{point.wrong} of {point.served} served are wrong, with {confidence:.0%} confidence no more than "
        f"{point.bound(confidence):.2%} (wanted: {max_error:.2%})"
    )


def _why_not(points: Iterable[Point], max_error: float, confidence: float) -> str:
    best = min((p for p in points if p.served), key=lambda p: (p.bound(confidence), p.threshold), default=None)
    fewest = estimate.needed(max_error, confidence)
    if best is None:
        return f"none of these pairs is served at any; to show {max_error:.2%}, at least {fewest} have to be"
    said = (
        f"at best, from {best.threshold:.3f} on, {best.wrong} of {best.served} served are wrong, which can be up to "
        f"{best.bound(confidence):.2%} (wanted: {max_error:.2%})"
    )
    if best.wrong / best.served > max_error:
        return f"{said}; look at the guards and the verifier, or take another embedder"
    enough = estimate.needed(max_error, confidence, best.wrong)
    least = f", {fewest} with none wrong" if best.wrong else ""
    return f"{said}; too few pairs: with no more wrong, {enough} served pairs would show it{least}"
