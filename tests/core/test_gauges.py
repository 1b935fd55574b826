"""What the engines' and the GPU exporters' pages say of their load."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core.gauges import Reading, read, read_gpu
from tests.core.pages import (
    LLAMA,
    LLAMA_BUSY,
    MIG,
    NEW_VLLM,
    OLD_VLLM,
    SGLANG,
    SGLANG_PARTS,
    SGLANG_SHARDS,
    TGI,
    V100,
    VLLM,
)  # fmt: skip
from tests.examples import tries

BLANK = "9223372036854775794"
"""What DCGM writes for an integer that it does not have."""


@pytest.mark.parametrize(
    ("page", "reading"),
    [
        (NEW_VLLM, Reading(3, 0, 0.92, full=False)),
        (LLAMA_BUSY, Reading(1, 2, None, full=True)),
        (SGLANG, Reading(162, 2826, 0.28, full=True)),
        (TGI, Reading(4, 2, None, full=True)),
        (TGI.replace("tgi_queue_size 2", "tgi_queue_size 0"), Reading(4, 0, None, full=False)),
        ("# TYPE tgi_queue_size gauge\ntgi_queue_size 1\n", Reading(0, 1, None, full=True)),
        (VLLM, Reading(7, 2, 0.5, full=True)),
        (OLD_VLLM, Reading(2, 0, 0.96, full=True)),
        (SGLANG_SHARDS, Reading(16, 0, 0.28, full=False)),
        (SGLANG_PARTS, Reading(8, 3, pytest.approx(0.04), full=True)),
        (LLAMA, Reading(1, 0, None, full=False)),
        # Its cells hold what idle slots keep for later as well: that is no reason to go elsewhere.
        (LLAMA + "llamacpp:kv_cache_usage_ratio 0.99\n", Reading(1, 0, 0.99, full=False)),
        (LLAMA.replace("deferred 0", "deferred 5"), Reading(1, 5, None, full=True)),
        (LLAMA.replace("\n", "\r\n"), Reading(1, 0, None, full=False)),
        ("vllm:num_requests_running 1", Reading(1, 0, None, full=False)),
        ("vllm:num_requests_running\t+1.0e0", Reading(1, 0, None, full=False)),
        ("vllm:num_requests_running{} 1\nvllm:kv_cache_usage_perc NaN", Reading(1, 0, None, full=False)),
        ("vllm:num_requests_running 1\nvllm:num_requests_waiting +Inf", Reading(1, 0, None, full=False)),
        ("vllm:num_requests_running 1\nvllm:num_requests_waiting -3", Reading(1, 0, None, full=False)),
        ("vllm:num_requests_running 1e300", Reading(1_000_000, 0, None, full=False)),
    ],
)  # fmt: skip
def test_engines_are_understood(page, reading):
    """Sums over engines and data-parallel ranks, once for shards that work on the same requests, no part twice."""
    assert read(page.encode()) == reading


@pytest.mark.parametrize(
    "page",
    [
        "", "{}", '{"error": "not found"}', "<html>", "python_gc_objects_collected_total 5\n", "vllm:num_requests_running",
        "vllm:num_requests_running x", "vllm:num_requests_running{a= 5", "# vllm:num_requests_running 5",
        "vllm:num_requests_running_total 5", " vllm:num_requests_running 5", "vllm:num_requests_running NaN",
    ],
)  # fmt: skip
def test_what_is_no_page_of_an_engine_says_nothing(page):
    assert read(page.encode()) is None


@pytest.mark.parametrize(
    ("page", "utilisation"),
    [(NEW_VLLM, 0.92), (SGLANG_SHARDS, 0.28), (LLAMA + "llamacpp:kv_cache_usage_ratio 0.99\n", None), (TGI, None)],
)
def test_what_is_kept_for_later_is_not_in_use(page, utilisation):
    """Of llama.cpp's cells none can be told to be in use; what GPUs say counts with all, if it is more."""
    reading = read(page.encode())
    assert reading.utilisation == utilisation
    for gpu in (0.1, 0.97):
        assert dataclasses.replace(reading, gpu=gpu).utilisation == max(gpu, utilisation or 0.0)


@pytest.mark.parametrize(
    ("page", "part"),
    [
        (V100, 0.6),
        (MIG, 0.7),
        (V100 + MIG, 0.7),
        ('DCGM_FI_DEV_GPU_UTIL{gpu="0"} 1', 0.01),
        ('DCGM_FI_DEV_GPU_UTIL{gpu="0"} 100', 1.0),
        (f'DCGM_FI_DEV_GPU_UTIL{{gpu="0"}} {BLANK}\nDCGM_FI_DEV_GPU_UTIL{{gpu="1"}} 30', 0.3),
        (f'DCGM_FI_DEV_GPU_UTIL{{gpu="0"}} {BLANK}', None),
        # From 4.9 on the names of ratios say so.
        ('DCGM_FI_DEV_GPU_UTIL_RATIO{gpu="0",gpu_uuid="GPU-1"} 0.25', 0.25),
        ('DCGM_FI_DEV_GPU_UTIL_RATIO{gpu="0"} 1\nDCGM_FI_DEV_GPU_UTIL_RATIO{gpu="1"} 0', 0.5),
        ('DCGM_FI_DEV_GPU_UTIL_RATIO{gpu="0"} 0.2\nDCGM_FI_PROF_GR_ENGINE_UTIL_RATIO{gpu="0"} 0.8', 0.8),
        ('DCGM_FI_DEV_GPU_UTIL_RATIO{gpu="0"} 80\nDCGM_FI_DEV_GPU_UTIL_RATIO{gpu="1"} 40', 0.6),
        ("DCGM_FI_DEV_GPU_UTIL 50", 0.5),
        ("DCGM_FI_DEV_GPU_TEMP 65", None),
        ('DCGM_FI_DEV_GPU_UTIL{gpu="0"} NaN', None),
        ('DCGM_FI_DEV_GPU_UTIL{gpu="0"} -1', None),
        ("", None),
        (VLLM, None),
    ],
)  # fmt: skip
def test_gpus_are_understood(page, part):
    """The mean of all, each once, by the better of the two gauges where it is there."""
    assert read_gpu(page.encode()) == (None if part is None else pytest.approx(part))


@given(
    page=st.lists(st.sampled_from([*VLLM.splitlines(), *SGLANG_PARTS.splitlines(), LLAMA, TGI, V100, MIG]) | st.text())
)
@tries(200)
def test_any_page_is_read_or_not(page):
    text = "\n".join(page).encode("utf-8", "surrogatepass")
    for part in (text, text[: len(text) // 2]):
        found = read(part)
        assert found is None or (found.running >= 0 and found.waiting >= 0)
        busy = read_gpu(part)
        assert busy is None or 0 <= busy <= 1
