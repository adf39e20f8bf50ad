"""Our llama.cpp engine against raw xllamacpp: same base, same prompt, same tokens, in turns, in one process.

Absolute numbers wander with the machine; the ratio is what counts. `engine / raw` near 1 means that streaming, the
private socket, cancellation and the thread of its own cost nothing that matters.

    python bench/engine_speed.py [--quick] [--json] [--base FILE]
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from models.bases import default_home, load_registry, require
from models.engine import GenerationRequest, Message
from models.engines.llama_cpp import LlamaCppEngine
from models.engines.llama_server import usable_cores
from models.prompts import render_chat

WORDS = "spindle drive axis encoder cable amplifier breaker voltage brake coupling bearing coolant".split()


def question(index: int, words: int) -> tuple[Message, ...]:
    """A prompt that shares no prefix with the next one, so that no cache helps either side."""
    text = " ".join(WORDS[(index * 7 + n * (index + 3)) % len(WORDS)] for n in range(words))
    return (Message(role="user", content=f"{index} {text}"),)


def raw_server(base: Path, folder: str) -> Any:
    xllamacpp = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = str(base)
    params.n_ctx, params.n_parallel, params.warmup, params.verbosity = 2048, 1, False, -1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = usable_cores()
    params.hostnames = [f"{folder}/raw.sock"]
    return xllamacpp.Server(params)


def run_engine(engine: LlamaCppEngine, messages: tuple[Message, ...], tokens: int) -> dict[str, float]:
    started = time.perf_counter()
    got = engine.generate(GenerationRequest(messages=messages, max_tokens=tokens))
    seconds = time.perf_counter() - started
    return rates(got.tokens_in, got.tokens_out, got.first_token_s or seconds, seconds)


def run_raw(server: Any, messages: tuple[Message, ...], tokens: int) -> dict[str, float]:
    started = time.perf_counter()
    prompt = render_chat(messages, "chatml")
    got = server.handle_completions({"prompt": prompt, "n_predict": tokens, "temperature": 0, "lora": []})
    seconds = time.perf_counter() - started
    usage, first_s = got["usage"], got["timings"]["prompt_ms"] / 1000
    return rates(usage["prompt_tokens"], usage["completion_tokens"], first_s, seconds)


def measure(base: Path, rounds: int, words: int, tokens: int) -> dict[str, Any]:
    engine = LlamaCppEngine(base, context_tokens=2048)
    runs: dict[str, list[dict[str, float]]] = {"engine": [], "raw": []}
    with tempfile.TemporaryDirectory() as folder:
        server = raw_server(base, folder)
        for index in range(rounds + 1):
            turns = [lambda n: runs["engine"].append(run_engine(engine, question(n, words), tokens))]
            turns.append(lambda n: runs["raw"].append(run_raw(server, question(n, words), tokens)))
            for turn in turns if index % 2 else reversed(turns):
                turn(index)
    engine.close()
    result: dict[str, Any] = {"base": base.name, "rounds": rounds, "cores": usable_cores()}
    for key in ("prefill_tokens_s", "decode_tokens_s", "seconds"):
        middle = {name: statistics.median(run[key] for run in made[1:]) for name, made in runs.items()}
        paired = [ours[key] / theirs[key] for ours, theirs in zip(runs["engine"][1:], runs["raw"][1:], strict=True)]
        result[key] = {name: round(value, 2) for name, value in middle.items()}
        result[key]["ratio"] = round(statistics.median(paired), 3)
    result["tokens_out"] = [run["tokens_out"] for run in runs["engine"][1:]]
    return result


def rates(tokens_in: int, tokens_out: int, first_s: float, seconds: float) -> dict[str, float]:
    decode = (tokens_out - 1) / max(seconds - first_s, 1e-9)
    return {
        "prefill_tokens_s": tokens_in / first_s,
        "decode_tokens_s": decode,
        "seconds": seconds,
        "tokens_out": tokens_out,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="5 rounds instead of 25")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--base", type=Path, help="GGUF file; else the default base of the data home")
    options = parser.parse_args()
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # for both sides: the setting is the process's
    base = options.base or require(default_home(), load_registry().get())
    result = measure(base, rounds=5 if options.quick else 25, words=120, tokens=48)
    if options.json:
        print(json.dumps(result, indent=1))
        return 0
    print(f"{result['base']}, {result['cores']} cores, median of {result['rounds']} rounds in turns")
    for key in ("prefill_tokens_s", "decode_tokens_s", "seconds"):
        row = result[key]
        print(f"{key:17} engine {row['engine']:8.2f}   raw {row['raw']:8.2f}   engine/raw {row['ratio']:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
