#!/usr/bin/env python3
"""Makes docs/performance.md and docs/images/scaling.svg from the results in bench/results.

    tools/performance.py [--check] [--root FOLDER]    --check changes nothing and fails if they are stale
    tools/performance.py --against RESULT.json        a result beside the last recorded one of its artifact

Results are what `tandem bench --json`, `tandem profile --json`, bench/web_rates.mjs and bench/web_replay.mjs write, named
date-adapter-geometry-what.json: 2026-11-30-h200-e2b-bench.json, or with int8 activations 2026-11-30-h200-e2b-int8-bench.json. Whoever adds one runs this script.
"""

import argparse
import json
import math
import pathlib
import statistics
import sys

PAGE = """\
# Performance

<!-- Made by tools/performance.py from bench/results; its text is in that script. -->

Every figure in a table here comes from a file in `bench/results`, which holds each sample. It describes the artifact,
device, driver and commit that are named beside it, and no others.

## Method

    tandem bench ARTIFACT --json bench/results/DATE-ADAPTER-GEOMETRY-bench.json
    tandem profile ARTIFACT --json bench/results/DATE-ADAPTER-GEOMETRY-profile.json
    node bench/web_rates.mjs bench/results/DATE-ADAPTER-atlas-bench.json > bench/results/DATE-ADAPTER-atlas-web.json
    node bench/web_replay.mjs > bench/results/DATE-ADAPTER-atlas-replay.json
    tools/performance.py

- **Load** is reading, verifying and writing all weights; **compile** is kernels and recorded methods, with whatever the
  driver has cached from earlier runs. **First token** is the first generation after them, with nothing warm; among the goals and
  where libraries are compared, it is that of a prefill, warm.
- **Prefill** at n tokens: n divided by the time from the call until the first token is read back.
- **Decode** at depth d: a prompt of d tokens, then the rate from the first token to the last.
- Each rate is the median of its samples (five by default; smallest and largest beside it), after 200 ms of the same
  work. Lengths that do not fit the context are skipped and named.
- Prompts are a fixed pseudo-random sequence of ordinary tokens; tokens are chosen greedily and stop tokens ignored. Speed does not depend on what
  weights or text say, so a synthetic artifact (random weights of an official geometry, named as such) stands for
  the real one in speed alone.
- **Busy** is the part of that time for which the thread that submits and reads had a processor.
- Each result names the digest that its artifact had then. Those of the atlas that differ from what `tandem verify` prints of
  `models/atlas` now had older versions of manifest and receipt: other metadata, the same weights.
- **GPU memory** is what Tandem allocates: weights, one session (KV and timeline) and scratch. The driver's own comes on top.
- **MTP at a forced acceptance**: drafts are replaced, after the assistant has made them, such that each round accepts just
  so many. It tells what a round costs, whatever the weights are, and nothing of an assistant's worth. Plain decoding runs in
  turn with it in one engine; the tokens must be the same.
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

`tandem inspect ARTIFACT --census` says of each method how many dispatches it has, and the bytes that they must move and have bound.

`make bench` measures the machine it runs on and prints each figure beside the last recorded one; `bench/peers/` runs a
llama.cpp of your own on the same geometry.

Build with `make release` and leave the machine to the run. A commit that ends in `+` had changes that it does not hold.
"""

MISSING = """\
What goals of decode miss: a dispatch that does nothing takes 1.7 us, 0.52 ms for the 307 of a token in f32 (of 2.0 ms), and as much for
the 308 with int8 activations (of 1.8). Those that move next to nothing (gates, attention of 512 keys and what goes with it) are four
tenths of them. What a profile, in which no two dispatches overlap, shows beyond the 5 us that each one's pass costs there: in f32 products 1.5 ms, half of it with
residual steps in them, attention 0.41, gates 0.16; with int8 products 1.2 ms, attention 0.42, gates 0.16. Tried, and left out since
they gained nothing: keys and values in attention itself (15 dispatches fewer), fewer barriers in attention's combine, x read ahead in f32
products, kernels chosen by measurement, other cuts of each product, residual steps by the last workgroup of the product before
([operators](operators.md) has each with its figures).

A round with two drafts has 146 dispatches more than a token: the drafts', 36 each, what joins them, and 68 residual steps, since the
products of three rows do not take them. Of a prefill of 128 tokens in f32 tiled products take 79 % of a profile (at 512 rows they reach 18 to 25
TFLOPS, [operators](operators.md)); with
int8 they take 60 %, 19 of them for the per-layer inputs in f32, and attention 9 %. A load is a copy out of the page cache, SHA-256 on all
cores and a copy to the GPU, and differs from host to host.
"""

CHUNKS = """\
At E2B's size, without an assistant, by the rows of a chunk (`--input-bound`). Longer chunks read the weights less often and fill the GPU better, but hold
more rows at once. An artifact says 512 unless its export was asked for another bound: more gain next to nothing for a prompt of 512
tokens (2048 are cut for as many, and lose 9 %), and 1024 would take more than 128 MiB of memory. Whoever has long prompts and the memory
opens the engine with 2048.
"""

LIBRARIES = """\
At E2B's size. The first is the default: wgpu-native decodes 1 to 3 % faster and leaves more of the thread's time, but Dawn
has its kernels ready sooner on a first start, and is what Chromium runs, so that the engine and the browser share one compiler of
kernels. `make test-wgpu` runs the tests with the other.
"""

TOP_KERNELS = 12


def fail(path, reason):
    sys.exit(f"{path}: {reason}")


def table(header, rows):
    """A Markdown table, its first column aligned left and the others right."""
    lines = [header, ["---"] + ["---:"] * (len(header) - 1)] + rows
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def activations(result):
    # Results from before there was a choice do not say.
    return result["options"].get("activations", "f32")


def origin(result):
    artifact, device, options = result["artifact"], result["device"], result["options"]
    synthetic = ", synthetic: random weights" if artifact["synthetic"] else ""
    software = " (software)" if device["software"] else ""
    passes = ", one pass for each dispatch" if options["pass_per_dispatch"] else ""
    # Results from before there was tuning do not say.
    tuned = f", {options['tuned_shapes']} shapes of products tuned" if options.get("tuned_shapes") else ""
    return "\n".join((
        f"- artifact: {artifact['name']}{synthetic}, {artifact['weight_bytes'] / 1e6:.1f} MB of weights, digest "
        f"`{artifact['digest'][:16]}`",
        f"- device: {device['adapter']}{software}; driver: {device['driver'] or 'not told'}; library: {device['library']}; tiers: "
        f"{', '.join(device['tiers'])}",
        f"- options: KV {options['kv']}, activations {activations(result)}, context {options['context']}, input bound {options['input_bound']}, "
        f"{options['rounds_in_flight']} rounds in flight{passes}{tuned}",
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


def forced_row(path, row):
    plain, mtp = row["plain"], row["mtp"]
    for name in ("plain", "mtp"):
        check_samples(path, f"{name} at {row['tokens_per_round']} tokens a round", row[name])
    if abs(row["ratio"] - share(mtp["median"], plain["median"])) > 1e-9:
        fail(path, f"{row['tokens_per_round']} tokens a round: ratio is not that of its figures")
    return ([f"{row['tokens_per_round']}", str(row["depth"])] +
            [f"{rate['median']:.1f} ({rate['min']:.1f} .. {rate['max']:.1f})" for rate in (plain, mtp)] +
            [f"{row['ratio']:.2f}", f"{row['plain_round_ms']:.3f}", f"{row['round_ms']:.3f}"])


def bench(path, result):
    first = result["first_token"]
    yield (f"Load {result['load_ms']:.0f} ms ({load_rate(result):.2f} GB/s, verified), compile {result['compile_ms']:.0f} ms, first token "
           f"{first['ms']:.0f} ms after {first['prompt_tokens']} tokens.\n")
    if "memory" in result:
        memory = result["memory"]
        yield (f"GPU memory {memory['gpu_bytes'] / 1e6:.1f} MB, of which the session has {memory['session_bytes'] / 1e6:.1f} MB. "
               f"Dispatches: {', '.join(f'{count} of a {name}' for name, count in result['dispatches'].items())}.\n")
    for series, length in (("prefill", "tokens"), ("decode", "depth")):
        rows = []
        for row in result[series]:
            check_samples(path, f"{series} at {row[length]}", row)
            busy = [f"{100 * row['busy']:.0f} %"] if "busy" in row else []
            rows.append([str(row[length])] + [f"{row[key]:.1f}" for key in ("median", "min", "max")] + busy)
        if rows:
            yield table([f"{series} {length}", "tokens/s", "min", "max", "busy"][:len(rows[0])], rows)
        if result["skipped"][series]:
            lengths = ", ".join(map(str, result["skipped"][series]))
            yield f"Skipped, as they do not fit the context: {series} at {lengths}.\n"
    if result.get("mtp"):
        yield table(["MTP beside plain", "plain tokens/s", "MTP tokens/s", "ratio", "acceptance (by place)", "tokens/round"],
                    [mtp_row(path, row) for row in result["mtp"]])
    if result.get("forced"):
        yield table(["MTP, tokens/round forced to", "depth", "plain tokens/s", "MTP tokens/s", "ratio", "plain round ms", "MTP round ms"],
                    [forced_row(path, row) for row in result["forced"]])


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
        tokens = f" of {result['prompt_tokens']}" if method["method"] == "prefill" and "prompt_tokens" in result else ""
        yield table([method["method"] + tokens, "calls", f"us/{method['unit']}", "GB/s", "share"], rows)
        drafting = method.get("drafting_ns")
        yield f"Between dispatches: {method['gap_ns'] / method['runs'] / 1e3:.1f} us." + (
            f" Of the total, drafting takes {drafting / method['runs'] / 1e3:.1f} us, {100 * drafting / method['time_ns']:.1f}%.\n"
            if drafting else "\n")


KINDS = {"bench": bench, "profile": profile, "web": web, "replay": replay}


def load(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        fail(path, f"is not JSON: {error}")


def section(path):
    result = load(path)
    try:
        if result["schema"] != 1 or result["kind"] not in KINDS:
            fail(path, f"schema {result['schema']}, kind {result['kind']}: expected 1 and one of {', '.join(KINDS)}")
        if not (path.name.startswith(result["date"][:10] + "-") and path.stem.endswith("-" + result["kind"])):
            fail(path, f"expected a name of the form {result['date'][:10]}-ADAPTER-GEOMETRY-{result['kind']}.json")
        software = " (software)" if result["device"]["software"] else ""
        int8 = " with int8 activations" if activations(result) == "int8" else ""
        title = (f"### {result['kind'].capitalize()}: {result['artifact']['name']}{int8} on "
                 f"{result['device']['adapter']}{software}, {result['date'][:10]}\n")
        return "\n".join([title, origin(result), *KINDS[result["kind"]](path, result)])
    except KeyError as error:
        fail(path, f"has no key {error}")


def load_rate(result):
    """GB/s."""
    return share(result["artifact"]["weight_bytes"] / 1e6, result["load_ms"])


def figures(result):
    """What a bench says, by name: values of which the larger, or with a "<" in front the smaller, is better."""
    found = {"load, GB/s": load_rate(result), "< compile, s": result["compile_ms"] / 1e3}
    for row in result["prefill"]:
        found[f"prefill at {row['tokens']}, tokens/s"] = row["median"]
        found[f"< first token after {row['tokens']}, ms"] = 1e3 * row["tokens"] / row["median"]
    for row in result["decode"]:
        found[f"decode at {row['depth']}, tokens/s"] = row["median"]
        if "busy" in row:
            found[f"< thread busy in decode at {row['depth']}, %"] = 100 * row["busy"]
    for row in result.get("mtp", []):
        found[f"MTP, {row['prompts']}, x plain"] = row["ratio"]
    for row in result.get("forced", []):
        found[f"MTP at {row['tokens_per_round']} forced tokens/round, tokens/s"] = row["mtp"]["median"]
        found[f"MTP at {row['tokens_per_round']} forced tokens/round, x plain"] = row["ratio"]
    for method, count in result.get("dispatches", {}).items():
        found[f"< dispatches of a {method}"] = count
    if "memory" in result:
        memory = result["memory"]
        found["< GPU memory beyond weights and session, MiB"] = (
            memory["gpu_bytes"] - result["artifact"]["weight_bytes"] - memory["session_bytes"]) / 2**20
    return found


# What is wanted at E2B's size on an H200: figure, must, goal.
RATES = {
    "f32": (
        ("decode at 512, tokens/s", 450, 540), ("decode at 2048, tokens/s", 440, 530), ("decode at 8192, tokens/s", 420, 500),
        ("MTP at 2 forced tokens/round, x plain", 1.1, None), ("MTP at 2 forced tokens/round, tokens/s", None, 610)),
    "int8": (
        ("decode at 512, tokens/s", 540, 680), ("decode at 2048, tokens/s", 530, 660), ("decode at 8192, tokens/s", 500, 620),
        ("MTP at 2 forced tokens/round, x plain", 1.3, None), ("MTP at 2 forced tokens/round, tokens/s", None, 890))}
GOALS = (
    ("prefill at 512, tokens/s", 10000, 20000), ("prefill at 8192, tokens/s", 10000, 20000),
    ("< dispatches of a decode", 430, 330), ("< dispatches of a k2_round", 540, 430), ("load, GB/s", 1, 2),
    ("< compile, s", 10, 5), ("< GPU memory beyond weights and session, MiB", 256, 128),
    ("< first token after 512, ms", 80, 40), ("< thread busy in decode at 512, %", None, 85))


def number(value):
    return "-" if value is None else f"{value:.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.2f}"


DEFAULT_LIBRARY = "libwebgpu_dawn.so"


def newest(results, name, library=DEFAULT_LIBRARY, kernels=None, rows="f32"):
    """The newest bench of an artifact on a GPU with a WebGPU library and such activations, and with those kernels, if there is any."""
    found = [result for result in results if result["kind"] == "bench" and result["artifact"]["name"] == name
             and not result["device"]["software"] and result["device"]["library"] == library and activations(result) == rows
             and kernels in (None, result["device"]["kernel_closure"])]
    return max(found, key=lambda result: result["date"], default=None)


def goals(results):
    parts = [part for rows in RATES if (result := newest(results, "e2b", rows=rows)) for part in goals_of(result)]
    return parts and [*parts, MISSING]


def goals_of(result):
    found = figures(result)

    def reached(name):
        if name not in found:
            return "-"
        bounds = [(text, bound) for text, bound in (("goal", goal), ("must", must)) if bound is not None]
        better = (lambda bound: found[name] <= bound) if name.startswith("<") else (lambda bound: found[name] >= bound)
        return next((text for text, bound in bounds if better(bound)), "no")

    rows = []
    for name, must, goal in RATES[activations(result)] + GOALS:
        bounds = [("≤ " if name.startswith("<") and bound is not None else "") + number(bound) for bound in (must, goal)]
        rows.append([name.removeprefix("< "), *bounds, number(found.get(name)), reached(name)])
    return [f"## Goals with {activations(result)} activations\n\nAt E2B's size, as of {result['date'][:10]} on {result['device']['adapter']}:\n",
            table(["figure", "must", "goal", "measured", "reached"], rows)]


def libraries(results):
    """Other WebGPU libraries beside the default one, each where both were measured with the same kernels at E2B's size."""
    parts = []
    for library in sorted({result["device"]["library"] for result in results} - {DEFAULT_LIBRARY}):
        for rows in RATES:
            other = newest(results, "e2b", library, rows=rows)
            same = other and newest(results, "e2b", kernels=other["device"]["kernel_closure"], rows=rows)
            if not same:
                continue
            columns = {DEFAULT_LIBRARY: figures(same), library: figures(other)}
            names = [name for name in columns[DEFAULT_LIBRARY] if name in columns[library]]
            parts += [f"{rows} activations, kernels of commit {same['commit']}:\n",
                      table(["figure", *columns], [[name.removeprefix("< "), *(number(figure[name]) for figure in columns.values())]
                                                   for name in names])]
    return ["## Libraries\n", LIBRARIES, *parts] if parts else []


def chunks(root):
    """Prefill by the rows of a chunk, of the results in a folder of their own."""
    results = [load(path) for path in sorted((root / "bench" / "results" / "chunks").glob("*.json"))]
    results.sort(key=lambda result: (activations(result), result["options"]["input_bound"]))
    if not results:
        return []
    names = ["prefill at 512, tokens/s", "prefill at 2048, tokens/s", "prefill at 8192, tokens/s",
             "< GPU memory beyond weights and session, MiB"]
    rows = [[activations(result), str(result["options"]["input_bound"]), *(number(figures(result)[name]) for name in names)]
            for result in results]
    first = results[0]
    return ["## Rows of a prefill chunk\n", CHUNKS,
            f"{first['device']['adapter']}, {first['device']['driver']}, commit {first['commit']}, {first['date'][:10]}:\n",
            table(["activations", "rows", *(name.removeprefix("< ") for name in names)], rows)]


def scaling(results):
    """The curves of the plot: artifact, [(depth, ms of a token, ms if it grew as its bytes do)]."""
    curves = []
    for name in ("atlas", "e2b", "e4b"):
        result = newest(results, name)
        rows = [row for row in result["decode"] if "bytes" in row] if result else []
        if len(rows) < 2:
            continue
        first = rows[0]
        curves.append((f"{name}, {result['device']['adapter']}",
                       [(row["depth"], 1e3 / row["median"], 1e3 / first["median"] * row["bytes"] / first["bytes"]) for row in rows]))
    return curves


def svg(curves):
    """Milliseconds of a token by depth, both logarithmic: lines, and dashed what bytes alone would add."""
    width, height, left, right, top, bottom = 720, 420, 60, 150, 20, 50
    depths = [point[0] for _, points in curves for point in points]
    times = [time for _, points in curves for point in points for time in point[1:]]
    low, high = math.log2(min(times)) - 0.25, math.log2(max(times)) + 0.25
    first, last = math.log2(min(depths)), math.log2(max(depths))

    def x(depth):
        return left + (math.log2(depth) - first) / max(last - first, 1) * (width - left - right)

    def y(time):
        return top + (high - math.log2(time)) / (high - low) * (height - top - bottom)

    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13">',
             f'<rect width="{width}" height="{height}" fill="white"/>',
             f'<text x="{(left + width - right) / 2:.0f}" y="{height - 10}" text-anchor="middle">tokens before</text>',
             f'<text x="16" y="{(top + height - bottom) / 2:.0f}" text-anchor="middle" '
             f'transform="rotate(-90 16 {(top + height - bottom) / 2:.0f})">ms a token</text>']
    labelled = -math.inf
    for depth in sorted(set(depths)):
        if x(depth) < labelled + 40:
            continue
        labelled = x(depth)
        lines.append(f'<text x="{x(depth):.1f}" y="{height - bottom + 20}" text-anchor="middle">{depth}</text>')
    for exponent in range(math.ceil(low), math.floor(high) + 1):
        at = y(2 ** exponent)
        lines.append(f'<path d="M{left} {at:.1f}H{width - right}" stroke="#ddd"/>')
        lines.append(f'<text x="{left - 8}" y="{at + 4:.1f}" text-anchor="end">{2 ** exponent:g}</text>')
    for (label, points), color in zip(curves, ("#1b6ca8", "#c1440e", "#3a7d44")):
        for column, style in ((1, 'stroke-width="2"'), (2, 'stroke-dasharray="4 4"')):
            path = "L".join(f"{x(point[0]):.1f} {y(point[column]):.1f}" for point in points)
            lines.append(f'<path d="M{path}" fill="none" stroke="{color}" {style}/>')
        lines.append(f'<text x="{width - right + 8}" y="{y(points[-1][1]) + 4:.1f}" fill="{color}">{label}</text>')
    return "\n".join([*lines, "</svg>", ""])


def made(root):
    """The text of each file that follows from the results."""
    paths = sorted((root / "bench" / "results").glob("*.json"))
    sections = [section(path) for path in paths]
    results = [load(path) for path in paths]
    curves = scaling(results)
    plot = ["## Cost by depth\n", "Milliseconds of a decoded token by the tokens before it; dashed, what it would take if it grew as the bytes "
            "it must move do. Up to the window's 512 tokens attention takes longer for more keys, though their bytes are few.\n", "![Milliseconds a token by depth](images/scaling.svg)\n"] if curves else []
    text = "\n".join([PAGE, *goals(results), *chunks(root), *libraries(results), *plot, "## Results\n", *(sections or ["None is recorded yet.\n"])])
    files = {root / "docs" / "performance.md": text}
    if curves:
        files[root / "docs" / "images" / "scaling.svg"] = svg(curves)
    return files


def against(root, path):
    """A table of a result's figures beside those of the last recorded bench of its artifact."""
    result = load(path)
    recorded = newest([load(other) for other in sorted((root / "bench" / "results").glob("*.json"))], result["artifact"]["name"],
                      rows=activations(result))
    if recorded is None:
        sys.exit(f"bench/results has no bench of {result['artifact']['name']} with {activations(result)} activations on a GPU")
    before, now = figures(recorded), figures(result)
    origins = [f"{r['device']['adapter']}, {r['date'][:10]}, {r['commit']}" for r in (recorded, result)]
    rows = [[name.removeprefix("< "), number(before.get(name)), number(now[name]),
             f"{now[name] / before[name]:.2f}" if before.get(name) else "-"] for name in now]
    hint = "The figures of a software adapter say nothing of a GPU.\n\n" if result["device"]["software"] else ""
    return hint + table(["figure", *origins, "ratio"], rows)


def main(arguments):
    parser = argparse.ArgumentParser(description="Makes docs/performance.md and its plot from bench/results.")
    parser.add_argument("--check", action="store_true", help="change nothing; fail if the page is stale")
    parser.add_argument("--against", type=pathlib.Path, metavar="RESULT", help="print it beside the last recorded one")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[1],
                        help="the source tree")
    flags = parser.parse_args(arguments)
    if flags.against:
        print(against(flags.root, flags.against))
        return
    for path, text in made(flags.root).items():
        if not flags.check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != text:
            sys.exit(f"{path} is not what bench/results gives: run tools/performance.py")


if __name__ == "__main__":
    main(sys.argv[1:])
