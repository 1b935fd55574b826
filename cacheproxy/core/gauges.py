"""What engines and GPU exporters say of their load, on pages in the Prometheus text format. Any bytes are a page.

Names, and what they count, are those of vLLM (docs.vllm.ai, usage/metrics; older versions call the cache
`gpu_cache_usage_perc`), SGLang (docs.sglang.io, references/production_metrics), llama.cpp (tools/server/README.md;
newer versions say nothing of the cache), Text Generation Inference (huggingface.co, reference/metrics) and NVIDIA's
DCGM exporter (docs.nvidia.com/datacenter/dcgm, reference/dcgm-exporter-metrics; from 4.9 on its ratios have new names).
"""

import contextlib
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

FULL = 0.95
PERCENT = 100.0


@dataclass(frozen=True, slots=True)
class Reading:
    """What a backend said: requests that it works on, requests that wait for that, and the part of its KV cache that
    these occupy, where it says so. `full`: what comes now has to wait, or to displace. `occupied`: the usage counts
    only what is being worked on, not what is kept for later as well. `gpu`: the part of the time in which its GPUs
    worked, 0 to 1, by their own account."""

    running: int
    waiting: int
    kv_usage: float | None
    full: bool
    occupied: bool = field(default=True, compare=False)
    gpu: float | None = None

    @property
    def utilisation(self) -> float | None:
        """The part of it that is in use, 0 to 1; None if it does not say."""
        parts = [part for part in (self.kv_usage if self.occupied else None, self.gpu) if part is not None]
        return max(parts, default=None)


@dataclass(frozen=True, slots=True)
class _Names:
    """What an engine calls it."""

    running: bytes
    waiting: bytes
    usage: tuple[bytes, ...] = ()
    occupied: bool = True


ENGINES = (
    _Names(b"vllm:num_requests_running", b"vllm:num_requests_waiting",
           (b"vllm:kv_cache_usage_perc", b"vllm:gpu_cache_usage_perc")),
    _Names(b"sglang:num_running_reqs", b"sglang:num_queue_reqs", (b"sglang:token_usage",)),
    _Names(b"llamacpp:requests_processing", b"llamacpp:requests_deferred",
           (b"llamacpp:kv_cache_usage_ratio",), occupied=False),
    _Names(b"tgi_batch_current_size", b"tgi_queue_size"),
)  # fmt: skip
GPU_RATIOS = (b"DCGM_FI_PROF_GR_ENGINE_ACTIVE", b"DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", b"DCGM_FI_DEV_GPU_UTIL_RATIO")
"""The first are better: they count what was at work, and are there for parts of a GPU (MIG) too."""
GPU_PERCENT = b"DCGM_FI_DEV_GPU_UTIL"
_SAMPLE = re.compile(rb'(?:\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\})?[ \t]+(\S+)')
_LABEL = re.compile(rb'([a-zA-Z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"')
_SHARDS = frozenset({b"tp_rank", b"pp_rank", b"moe_ep_rank"})
"""Labels of processes that work together on the same requests, each of which may count them."""
_GPU = frozenset({b"gpu", b"uuid", b"gpu_uuid", b"gpu_i_id"})
"""Labels, in small letters, that tell GPUs and their parts apart. Others say who uses one, and that may be several."""


def read(page: bytes) -> Reading | None:
    """What a page says; None if it is of no engine that is known here."""
    page = b"\n" + page
    for engine in ENGINES:
        running, waiting = (_values(page, name) for name in (engine.running, engine.waiting))
        if not running and not waiting:
            continue
        usages = next((found for name in engine.usage if (found := _values(page, name))), [])
        usage = sum(usages) / len(usages) if usages else None
        queued = _count(waiting)
        full = queued > 0 or (engine.occupied and usage is not None and usage >= FULL)
        return Reading(_count(running), queued, usage, full, engine.occupied)
    return None


def read_gpu(page: bytes) -> float | None:
    """How busy the GPUs of a DCGM exporter's page are, 0 to 1: their mean; None if it does not say."""
    page = b"\n" + page
    for name in GPU_RATIOS:
        if found := _gpus(page, name):
            # Of some versions the name says a ratio and the value is a percentage.
            return _mean(found if max(found) <= 1 else [value / PERCENT for value in found])
    return _mean([value / PERCENT for value in _gpus(page, GPU_PERCENT)])


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _gpus(page: bytes, name: bytes) -> list[float]:
    """The values of a gauge, one for each GPU or part of one. What is blank is an integer beyond all percentages."""
    found: dict[tuple[tuple[bytes, bytes], ...], float] = {}
    for labels, value in _samples(page, name):
        if 0 <= value <= PERCENT:
            gpu = tuple(sorted((n.lower(), v) for n, v in labels.items() if n.lower() in _GPU))
            found[gpu] = max(found.get(gpu, 0.0), value)
    return list(found.values())


def _count(values: list[float]) -> int:
    return round(min(sum(values), 1e6))


def _values(page: bytes, name: bytes) -> list[float]:
    """The values of a gauge, one for each part of the backend that counts requests of its own: shards of one model
    count the same ones; where the parts are told apart, what has no part is their sum; and so is what has no
    priority the sum of those that have one."""
    found: dict[tuple[tuple[bytes, bytes], ...], float] = {}
    for labels, value in _samples(page, name):
        if labels.get(b"priority"):
            continue
        part = tuple(sorted((n, v) for n, v in labels.items() if n not in _SHARDS))
        found[part] = max(found.get(part, 0.0), value)
    if any(dict(part).get(b"dp_rank") for part in found):
        found = {part: value for part, value in found.items() if dict(part).get(b"dp_rank")}
    return list(found.values())


def _samples(page: bytes, name: bytes) -> Iterator[tuple[dict[bytes, bytes], float]]:
    at = page.find(b"\n" + name)
    while at >= 0:
        start = at + 1 + len(name)
        end = page.find(b"\n", start)
        line = page[start : end if end >= 0 else len(page)]
        if sample := _SAMPLE.match(line):
            with contextlib.suppress(ValueError):
                value = float(sample[2])
                if math.isfinite(value):
                    yield dict(_LABEL.findall(sample[1] or b"")), value
        at = page.find(b"\n" + name, start)
