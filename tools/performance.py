#!/usr/bin/env python3
"""Makes docs/performance.md from the results in bench/results.

    tools/performance.py [--check] [--root FOLDER]    --check changes nothing and fails if the page is stale

Results are what `tandem bench --json`, `tandem profile --json`, bench/web_rates.mjs and bench/web_replay.mjs write, named
date-adapter-geometry-what.json: 2026-11-30-h200-e2b-bench.json. Whoever adds one runs this script.
"""

import argparse
import json
import pathlib
import statistics
import sys

PAGE = """\
# Performance

<!-- Made by tools/performance.py from bench/results; its text is in that script. -->

Every figure here comes from a file in `bench/results`, which holds each sample. It describes the artifact,
device, driver and commit that are named beside it, and no others.

## Method

    tandem bench ARTIFACT --json bench/results/DATE-ADAPTER-GEOMETRY-bench.json
    tandem profile ARTIFACT --json bench/results/DATE-ADAPTER-GEOMETRY-profile.json
    node bench/web_rates.mjs bench/results/DATE-ADAPTER-atlas-bench.json > bench/results/DATE-ADAPTER-atlas-web.json
    node bench/web_replay.mjs > bench/results/DATE-ADAPTER-atlas-replay.json
    tools/performance.py

- **Load** is reading, verifying and writing all weights; **compile** is kernels and recorded methods, with whatever the
  driver has cached from earlier runs. **First token** is the first generation after them, with nothing warm.
- **Prefill** at n tokens: n divided by the time from the call until the first token is read back.
- **Decode** at depth d: a prompt of d tokens, then the rate from the first token to the last.
- Each rate is the median of its samples (five by default; smallest and largest beside it), after 200 ms of the same
  work. Lengths that do not fit the context are skipped and named.
- Prompts are a fixed pseudo-random sequence of ordinary tokens; tokens are chosen greedily and stop tokens ignored. Speed does not depend on what
  weights or text say, so a synthetic artifact (random weights of an official geometry, named as such) stands for
  the real one in speed alone.
- **MTP beside plain**, for artifacts with an assistant and a chat template whose weights are not random: answers to questions, profiles of
  countries and free text, which are sets of their own since acceptance depends on the text. Each sample decodes all prompts
  of a set, plain and with two drafts a round in turn, in one engine; the tokens must be the same. The ratio is that of
  the medians, **acceptance** the part of the verified drafts that was accepted, and **tokens/round** counts
  those after the first. A ratio holds for an artifact and a kind of text, so it never stands without these two.
- A **profile** puts each dispatch into a pass of its own between two GPU timestamps. Its sums are not what the same
  work takes in one pass, so it tells where the time goes, and `bench` how much there is. Bytes are what a kernel
  must read and write at least once at its shape; GB/s is their sum over the time.
- **Web** is the browser's WebAssembly under Node, whose package `webgpu` is Dawn: the sets of the native engine's result
  that it is held beside, right after it on the same machine, with as many tokens and samples.
- **Replay** is what the processor does in Chromium for a round, which is one call from WebAssembly into JavaScript: to
  **encode** a dispatch, and apart from that to **hand over** the submission and its readback, where Chromium may wait for its
  GPU process. On a software adapter that process has the same cores.
- Software adapters compute on the processor. Their figures say nothing of a GPU.

Build with `make release` and leave the machine to the run. A commit that ends in `+` had changes that it does not hold.

## Results
"""

TOP_KERNELS = 12


def fail(path, reason):
    sys.exit(f"{path}: {reason}")


def table(header, rows):
    """A Markdown table, its first column aligned left and the others right."""
    lines = [header, ["---"] + ["---:"] * (len(header) - 1)] + rows
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def origin(result):
    artifact, device, options = result["artifact"], result["device"], result["options"]
    synthetic = ", synthetic: random weights" if artifact["synthetic"] else ""
    software = " (software)" if device["software"] else ""
    passes = ", one pass for each dispatch" if options["pass_per_dispatch"] else ""
    return "\n".join((
        f"- artifact: {artifact['name']}{synthetic}, {artifact['weight_bytes'] / 1e6:.1f} MB of weights, digest "
        f"`{artifact['digest'][:16]}`",
        f"- device: {device['adapter']}{software}; driver: {device['driver'] or 'not told'}; library: {device['library']}; tiers: "
        f"{', '.join(device['tiers'])}",
        f"- options: KV {options['kv']}, context {options['context']}, input bound {options['input_bound']}, "
        f"{options['rounds_in_flight']} rounds in flight{passes}",
        f"- commit {result['commit']}, kernels `{device['kernel_closure'][:16]}`, {result['date']}",
        f"- `{result['command']}`")) + "\n"


def check_samples(path, what, row):
    samples = row["tokens_per_second"]
    if (row["median"], row["min"], row["max"]) != (statistics.median(samples), min(samples), max(samples)):
        fail(path, f"{what}: median, min and max are not those of the samples")


def share(part, whole):
    return part / whole if whole else 0


def mtp_row(path, row):
    plain, mtp = row["plain"], row["mtp"]
    for name in ("plain", "mtp"):
        check_samples(path, f"{name} {row['prompts']}", row[name])
    expected = {"ratio": share(mtp["median"], plain["median"]),
                "acceptance": share(sum(row["accepted"]), sum(row["drafted"])),
                "tokens_per_round": share(row["tokens"], row["rounds"])}
    for key, value in expected.items():
        if abs(row[key] - value) > 1e-9:
            fail(path, f"{row['prompts']}: {key} is not that of its figures")
    places = " / ".join(f"{100 * share(a, d):.0f}" for a, d in zip(row["accepted"], row["drafted"]))
    return ([row["prompts"]] + [f"{rate['median']:.1f} ({rate['min']:.1f} .. {rate['max']:.1f})" for rate in (plain, mtp)] +
            [f"{row['ratio']:.2f}", f"{100 * row['acceptance']:.0f} % ({places})", f"{row['tokens_per_round']:.2f}"])


def bench(path, result):
    first = result["first_token"]
    yield (f"Load {result['load_ms']:.0f} ms, compile {result['compile_ms']:.0f} ms, first token "
           f"{first['ms']:.0f} ms after {first['prompt_tokens']} tokens.\n")
    for series, length in (("prefill", "tokens"), ("decode", "depth")):
        rows = []
        for row in result[series]:
            check_samples(path, f"{series} at {row[length]}", row)
            rows.append([str(row[length])] + [f"{row[key]:.1f}" for key in ("median", "min", "max")])
        if rows:
            yield table([f"{series} {length}", "tokens/s", "min", "max"], rows)
        if result["skipped"][series]:
            lengths = ", ".join(map(str, result["skipped"][series]))
            yield f"Skipped, as they do not fit the context: {series} at {lengths}.\n"
    if result.get("mtp"):
        yield table(["MTP beside plain", "plain tokens/s", "MTP tokens/s", "ratio", "acceptance (by place)", "tokens/round"],
                    [mtp_row(path, row) for row in result["mtp"]])


def web(path, result):
    rows = []
    for row in result["mtp"]:
        name, *_, acceptance, _ = mtp_row(path, row)
        cells = [name]
        for way in ("plain", "mtp"):
            check_samples(path, f"native {way} {name}", row["native"][way])
            medians = row[way]["median"], row["native"][way]["median"]
            cells += [f"{median:.1f}" for median in medians] + [f"{share(*medians):.2f}"]
        rows.append(cells + [acceptance])
    yield table(["tokens/s", "plain", "native", "part", "MTP", "native", "part", "acceptance (by place)"], rows)


def replay(path, result):
    spreads = [result["encode_us_per_dispatch"], result["hand_over_us_per_submission"]]
    for spread in spreads:
        samples = spread["samples"]
        if samples != sorted(samples) or spread["p10"] != samples[(len(samples) - 1) // 10]:
            fail(path, "p10 is not that of the samples, or they are not sorted")
    yield table(["submissions", "dispatches each", "calls each", "encode, us/dispatch: p10", "median", "p90",
                 "hand over, us each: p10", "median", "p90"],
                [[str(result["submissions"]), f"{result['dispatches_per_submission']:.0f}",
                  f"{result['calls_per_submission']:.0f}"] +
                 [f"{spread[key]:.2f}" for spread in spreads for key in ("p10", "median", "p90")]])


def profile(path, result):
    for method in result["methods"]:
        kernels = method["kernels"]
        if method["time_ns"] != sum(kernel["time_ns"] for kernel in kernels):
            fail(path, f"{method['method']}: time_ns is not the sum over the kernels")

        def row(name, calls, time_ns, bytes_moved):
            rate = f"{bytes_moved / time_ns:.2f}" if bytes_moved is not None and time_ns else "-"
            return [name, str(calls // method["runs"]), f"{time_ns / method['runs'] / 1e3:.1f}", rate,
                    f"{100 * time_ns / method['time_ns']:.1f}%"]

        rows = [row(f"`{kernel['kernel']}`", kernel["calls"], kernel["time_ns"], kernel["bytes"])
                for kernel in kernels[:TOP_KERNELS]]
        rest = kernels[TOP_KERNELS:]
        if rest:
            rows.append(row(f"{len(rest)} others", sum(kernel["calls"] for kernel in rest),
                            sum(kernel["time_ns"] for kernel in rest), None))
        rows.append(row("total", method["calls"], method["time_ns"], None))
        yield table([method["method"], "calls", f"us/{method['unit']}", "GB/s", "share"], rows)
        yield f"Between dispatches: {method['gap_ns'] / method['runs'] / 1e3:.1f} us.\n"


KINDS = {"bench": bench, "profile": profile, "web": web, "replay": replay}


def section(path):
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        fail(path, f"is not JSON: {error}")
    try:
        if result["schema"] != 1 or result["kind"] not in KINDS:
            fail(path, f"schema {result['schema']}, kind {result['kind']}: expected 1 and one of {', '.join(KINDS)}")
        if not (path.name.startswith(result["date"][:10] + "-") and path.stem.endswith("-" + result["kind"])):
            fail(path, f"expected a name of the form {result['date'][:10]}-ADAPTER-GEOMETRY-{result['kind']}.json")
        software = " (software)" if result["device"]["software"] else ""
        title = (f"### {result['kind'].capitalize()}: {result['artifact']['name']} on "
                 f"{result['device']['adapter']}{software}, {result['date'][:10]}\n")
        return "\n".join([title, origin(result), *KINDS[result["kind"]](path, result)])
    except KeyError as error:
        fail(path, f"has no key {error}")


def page(root):
    sections = [section(path) for path in sorted((root / "bench" / "results").glob("*.json"))]
    return "\n".join([PAGE, *(sections or ["None is recorded yet.\n"])])


def main(arguments):
    parser = argparse.ArgumentParser(description="Makes docs/performance.md from bench/results.")
    parser.add_argument("--check", action="store_true", help="change nothing; fail if the page is stale")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[1],
                        help="the source tree")
    flags = parser.parse_args(arguments)
    made = page(flags.root)
    target = flags.root / "docs" / "performance.md"
    if not flags.check:
        target.write_text(made, encoding="utf-8")
    elif not target.is_file() or target.read_text(encoding="utf-8") != made:
        sys.exit(f"{target} is not what bench/results gives: run tools/performance.py")


if __name__ == "__main__":
    main(sys.argv[1:])
