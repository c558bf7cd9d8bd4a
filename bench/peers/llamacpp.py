#!/usr/bin/env python3
"""Measures a llama.cpp of your own, whose programs are on the PATH, beside what Tandem recorded.

    bench/peers/llamacpp.py MODEL.gguf [--against NAME] [--repeat N]

MODEL.gguf: the model that Tandem measured, or random weights in its geometry (random_gguf.py). llama-bench computes its rates
without choosing tokens; llama-server answers requests one by one, greedily. All layers and tables are put on the GPU. The
figures are the programs' own. NAME: the artifact whose last recorded benches stand beside them (e2b).
"""

import argparse
import contextlib
import json
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import performance  # noqa: E402

DEPTHS = (512, 2048, 8192)
TOKENS = 128
ON_GPU = ["-ngl", "99", "-fa", "on"]
FIRST_ORDINARY, ORDINARY = 1000, 5000  # ids of the prompts
START_SECONDS = 300


def program(name):
    path = shutil.which(name)
    if path is None:
        sys.exit(f"{name} is not on the PATH: build llama.cpp, or install it, and add its folder")
    return path


def bench(model, repeat):
    """Tokens/s by figure, of llama-bench."""
    command = [program("llama-bench"), "-m", str(model), "-o", "json", "-r", str(repeat), "-ngl", "99", "-fa", "1"]
    prefill = ["-n", "0", "-p", ",".join(map(str, DEPTHS))]
    decode = ["-p", "0", "-n", str(TOKENS), "-d", ",".join(map(str, DEPTHS))]
    rates = {}
    for arguments in (prefill, decode):
        run = subprocess.run(command + arguments, stdout=subprocess.PIPE, text=True, check=False)
        if run.returncode != 0:
            sys.exit(f"llama-bench failed with {run.returncode}")
        for row in json.loads(run.stdout):
            name = f"prefill at {row['n_prompt']}" if row["n_gen"] == 0 else f"decode at {row['n_depth']}"
            rates[f"{name}, tokens/s"] = row["avg_ts"]
    return rates


@contextlib.contextmanager
def server(model):
    """Its address, once it answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    tables = "per_layer_token_embd.weight=CUDA0,token_embd.weight=CUDA0"
    command = [program("llama-server"), "-m", str(model), "--port", str(port), "-np", "1", "-c", str(max(DEPTHS) + 2 * TOKENS), *ON_GPU]
    for extra in (["-ot", tables], []):  # the first where there is a CUDA device
        process = subprocess.Popen(command + extra, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + START_SECONDS
            while process.poll() is None and time.monotonic() < deadline:
                with contextlib.suppress(OSError):
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                        yield f"http://127.0.0.1:{port}"
                        return
                time.sleep(0.2)
        finally:
            process.kill()
            process.wait()
    sys.exit(f"llama-server does not start with {model}")


def serve(model, repeat):
    """Tokens/s by figure, of llama-server."""
    rates = {}
    with server(model) as address:
        for depth in DEPTHS:
            timings = []
            for _ in range(repeat + 1):  # the first warms up
                prompt = [FIRST_ORDINARY + (i * 7919) % ORDINARY for i in range(depth)]
                request = {"prompt": prompt, "n_predict": TOKENS, "temperature": 0, "ignore_eos": True, "cache_prompt": False}
                with urllib.request.urlopen(urllib.request.Request(
                        f"{address}/completion", json.dumps(request).encode(), {"Content-Type": "application/json"})) as answer:
                    timings.append(json.load(answer)["timings"])
            for name, key in (("prefill", "prompt_per_second"), ("decode", "predicted_per_second")):
                rates[f"{name} at {depth}, tokens/s"] = statistics.median(timing[key] for timing in timings[1:])
    return rates


def main(arguments):
    parser = argparse.ArgumentParser(description="Measures a llama.cpp of your own beside what Tandem recorded.")
    parser.add_argument("model", type=pathlib.Path, help="a GGUF file: the model, or what random_gguf.py made in its geometry")
    parser.add_argument("--against", default="e2b", metavar="NAME", help="the artifact of the recorded bench (default: e2b)")
    parser.add_argument("--repeat", type=int, default=5, help="samples of each figure (default: 5)")
    flags = parser.parse_args(arguments)
    for name in ("llama-bench", "llama-server"):
        program(name)
    if not flags.model.is_file():
        sys.exit(f"{flags.model}: no such file; bench/peers/random_gguf.py makes one")
    results = [performance.load(path) for path in sorted((ROOT / "bench" / "results").glob("*.json"))]
    recorded = {rows: result for rows in performance.RATES if (result := performance.newest(results, flags.against, rows=rows))}
    if not recorded:
        sys.exit(f"bench/results has no bench of {flags.against} on a GPU")
    columns = {"llama-bench": bench(flags.model, flags.repeat), "llama-server": serve(flags.model, flags.repeat)}
    for rows, result in recorded.items():
        columns[f"Tandem, {rows}, {result['device']['adapter']}, {result['date'][:10]}"] = performance.figures(result)
    names = [f"{kind} at {depth}, tokens/s" for kind in ("decode", "prefill") for depth in DEPTHS]
    print(performance.table(["figure", *columns], [[name, *(performance.number(rates.get(name)) for rates in columns.values())]
                                                  for name in names]))


if __name__ == "__main__":
    main(sys.argv[1:])
