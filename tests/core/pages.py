"""Pages of metrics as engines and GPU exporters write them, or parts of such."""

VLLM = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="org/a}b\\"{c"} 3.0
vllm:num_requests_running{engine="1",model_name="org/a}b\\"{c"} 4.0
# HELP vllm:num_requests_waiting Number of requests waiting to be processed.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 0.0
vllm:num_requests_waiting{engine="1",model_name="m"} 2.0
vllm:num_requests_waiting_by_reason{engine="1",model_name="m",reason="capacity"} 70.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.75
vllm:gpu_cache_usage_perc{engine="0",model_name="m"} 0.9
vllm:prompt_tokens_total{engine="0",model_name="m"} 8.128902e+06
"""
OLD_VLLM = """\
vllm:num_requests_running{model_name="m"} 2.0
vllm:num_requests_swapped{model_name="m"} 9.0
vllm:num_requests_waiting{model_name="m"} 0.0
vllm:gpu_cache_usage_perc{model_name="m"} 0.96
vllm:cpu_cache_usage_perc{model_name="m"} 0.1
"""
SGLANG_SHARDS = """\
sglang:num_running_reqs{engine_type="unified",model_name="m",pp_rank="0",tp_rank="0"} 16.0
sglang:num_running_reqs{engine_type="unified",model_name="m",pp_rank="0",tp_rank="1"} 15.0
sglang:num_queue_reqs{engine_type="unified",model_name="m",pp_rank="0",tp_rank="0"} 0.0 1790347303000
sglang:num_queue_reqs_total{model_name="m"} 999
sglang:token_usage{engine_type="unified",model_name="m",pp_rank="0",tp_rank="0"} 0.28
"""
SGLANG_PARTS = """\
sglang:num_running_reqs{model_name="m",tp_rank="0",priority=""} 8
sglang:num_running_reqs{model_name="m",tp_rank="0",dp_rank="0",priority=""} 3
sglang:num_running_reqs{model_name="m",tp_rank="0",dp_rank="1",priority=""} 5
sglang:num_running_reqs{model_name="m",tp_rank="0",dp_rank="1",priority="7"} 5
sglang:num_queue_reqs{model_name="m",tp_rank="0",dp_rank="0",priority=""} 1
sglang:num_queue_reqs{model_name="m",tp_rank="0",dp_rank="1",priority=""} 2
sglang:token_usage{model_name="m",tp_rank="0",dp_rank="0"} 0.02
sglang:token_usage{model_name="m",tp_rank="0",dp_rank="1"} 0.06
"""
LLAMA = """\
# HELP llamacpp:requests_processing Number of requests processing.
# TYPE llamacpp:requests_processing gauge
llamacpp:requests_processing 1
# HELP llamacpp:requests_deferred Number of requests deferred.
# TYPE llamacpp:requests_deferred gauge
llamacpp:requests_deferred 0
"""
LLAMA_BUSY = """\
# HELP llamacpp:n_tokens_max Largest observed sequence length (prompt + generation)
# TYPE llamacpp:n_tokens_max counter
llamacpp:n_tokens_max 47
# HELP llamacpp:prompt_tokens_seconds Average prompt throughput in tokens/s
# TYPE llamacpp:prompt_tokens_seconds gauge
llamacpp:prompt_tokens_seconds 139.455
# HELP llamacpp:requests_processing Number of requests processing
# TYPE llamacpp:requests_processing gauge
llamacpp:requests_processing 1
# HELP llamacpp:requests_deferred Number of requests deferred
# TYPE llamacpp:requests_deferred gauge
llamacpp:requests_deferred 2
# HELP llamacpp:n_busy_slots_per_decode Average number of busy slots per llama_decode() call
# TYPE llamacpp:n_busy_slots_per_decode gauge
llamacpp:n_busy_slots_per_decode 1
"""
"""From llama.cpp's server (xllamacpp 2026.10), one slot, three requests."""
NEW_VLLM = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="qwen3.8-27b"} 3.0
# HELP vllm:num_requests_waiting Number of requests waiting to be processed.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="qwen3.8-27b"} 0.0
# HELP vllm:kv_cache_usage_perc KV-cache usage. 1 means 100 percent usage.
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="qwen3.8-27b"} 0.92
"""
"""As vLLM 0.30 writes it: the older names are gone."""
TGI = """\
# TYPE tgi_request_count counter
tgi_request_count 150

# TYPE tgi_queue_size gauge
tgi_queue_size 2

# TYPE tgi_batch_current_size gauge
tgi_batch_current_size 4

# TYPE tgi_batch_current_max_tokens gauge
tgi_batch_current_max_tokens 8192

# TYPE tgi_batch_next_size histogram
tgi_batch_next_size_bucket{le="1"} 7
"""
"""As the router of Text Generation Inference writes it (metrics-exporter-prometheus: no help, no labels)."""
SGLANG = """\
# HELP sglang:token_usage The token usage
# TYPE sglang:token_usage gauge
sglang:token_usage{model_name="meta-llama/Llama-3.1-8B-Instruct"} 0.28
# HELP sglang:num_running_reqs The number of running requests
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{model_name="meta-llama/Llama-3.1-8B-Instruct"} 162.0
# HELP sglang:num_queue_reqs The number of requests in the waiting queue
# TYPE sglang:num_queue_reqs gauge
sglang:num_queue_reqs{model_name="meta-llama/Llama-3.1-8B-Instruct"} 2826.0
"""
"""From SGLang's documentation (production metrics)."""
V100 = "".join(
    f'DCGM_FI_DEV_{name}{{gpu="{gpu}",UUID="GPU-a6158b59-2c1e-1e63-0068-9178c429{gpu:04}",device="nvidia{gpu}",'
    f'modelName="Tesla V100-SXM2-32GB",Hostname="r6i3n0"}} {value}\n'
    for gpu, values in enumerate(([99, 1], [100, 2], [41, 3], [0, 4]))
    for name, value in zip(("GPU_UTIL", "GPU_UTIL_X"), values, strict=True)
)
"""The form of a page of NVIDIA's dcgm-exporter, up to 4.8, on a machine with four GPUs."""
MIG = """\
# HELP DCGM_FI_PROF_GR_ENGINE_ACTIVE Ratio of time the graphics engine is active.
# TYPE DCGM_FI_PROF_GR_ENGINE_ACTIVE gauge
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="GPU-58e8f5ea",pci_bus_id="00000000:1A:00.0",device="nvidia0",\
modelName="NVIDIA H100 80GB HBM3",GPU_I_PROFILE="1g.10gb",GPU_I_ID="7",Hostname="h",container="a",pod="p-1"} 0.900000
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="GPU-58e8f5ea",pci_bus_id="00000000:1A:00.0",device="nvidia0",\
modelName="NVIDIA H100 80GB HBM3",GPU_I_PROFILE="1g.10gb",GPU_I_ID="7",Hostname="h",container="b",pod="p-2"} 0.900000
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="GPU-58e8f5ea",pci_bus_id="00000000:1A:00.0",device="nvidia0",\
modelName="NVIDIA H100 80GB HBM3",GPU_I_PROFILE="1g.10gb",GPU_I_ID="8",Hostname="h"} 0.500000
"""
"""The form of one in Kubernetes, with a GPU in parts, one of them of two pods."""
