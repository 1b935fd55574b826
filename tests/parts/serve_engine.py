"""Runs in the engine's own virtual environment: llama.cpp's server until standard input ends or a signal comes."""

import argparse
import os
import signal
import sys

import xllamacpp


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--context", type=int, required=True)
    parser.add_argument("--alias", required=True)
    parser.add_argument("--api-key")
    parser.add_argument("--embeddings", action="store_true")
    parser.add_argument("--template", default="")
    parser.add_argument("--memory", type=int, default=0)
    options = parser.parse_args()
    params = xllamacpp.CommonParams()
    params.model.path = options.model
    params.model_alias = {options.alias}
    params.hostnames = ["127.0.0.1"]
    params.port = options.port
    params.n_ctx = options.context
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.cache_ram_mib = options.memory
    params.chat_template = options.template
    params.endpoint_metrics = params.endpoint_slots = True
    if options.embeddings:
        params.embedding = True
        params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    if options.api_key:
        params.api_keys = [options.api_key]
    server = xllamacpp.Server(params)
    print("listening", server.listening_address, flush=True)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))
    sys.stdin.read()
    os._exit(0)  # the server's own threads may be in the middle of an answer


main()
