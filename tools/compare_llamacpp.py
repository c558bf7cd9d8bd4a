#!/usr/bin/env python3
"""Compares Tandem's Gemma 3 270M with llama.cpp on the CPU: greedy tokens and perplexity.

Owns the golden file of what llama.cpp computes, tests/golden/gemma3-270m.json; the prompts in it are
read from an earlier run.

    tools/compare_llamacpp.py golden MODEL.gguf --out FILE
        writes what llama.cpp computes. Needs gguf 0.19.0 and xllamacpp 2026.10.11549 (PyPI), which
        holds llama.cpp with its C API, and 1.1 GB beside FILE
    tools/compare_llamacpp.py compare TANDEM ARTIFACT [--device DEVICE]
        runs the program TANDEM on the same prompts and text, prints a table, and fails where tokens
        differ without a near-tie or perplexities by more than 0.5 %; where there is no ARTIFACT it
        says so and ends with the code 77

llama.cpp rounds activations to 8 bits a block before it multiplies them by a quantized matrix, Tandem
does not. So llama.cpp runs the same weights as F32, which it makes of the file itself; the perplexity
of the file as it is is recorded beside.

Where the two differ, Tandem goes on from llama.cpp's token. It is a near-tie where llama.cpp's logit
of Tandem's token is less than NEAR_TIE below its largest.
"""

import argparse
import ctypes
import json
import math
import pathlib
import subprocess
import sys
import tempfile

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden"
NAME = "gemma3-270m.json"
TOKENS = 48
CONTEXT = 512
# Both have KV in f16, Tandem some weights, too.
NEAR_TIE = 0.05
PERPLEXITY_TOLERANCE = 0.005
SKIPPED = 77


# ---- llama.cpp ----

class ModelParams(ctypes.Structure):
    """llama_model_params, taken whole from its default; no field is changed."""
    _fields_ = [("opaque", ctypes.c_uint8 * 512)]


class ContextParams(ctypes.Structure):
    """llama_context_params; what is behind the first fields is left as it is."""
    _fields_ = [("n_ctx", ctypes.c_uint32), ("n_batch", ctypes.c_uint32),
                ("n_ubatch", ctypes.c_uint32), ("n_seq_max", ctypes.c_uint32),
                ("opaque", ctypes.c_uint8 * 496)]


class Batch(ctypes.Structure):
    _fields_ = [("n_tokens", ctypes.c_int32), ("token", ctypes.POINTER(ctypes.c_int32)),
                ("embd", ctypes.c_void_p), ("pos", ctypes.POINTER(ctypes.c_int32)),
                ("n_seq_id", ctypes.POINTER(ctypes.c_int32)),
                ("seq_id", ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))),
                ("logits", ctypes.POINTER(ctypes.c_int8))]


def dequantize(source, target):
    """Writes a GGUF file with all weights as F32."""
    import gguf
    reader = gguf.GGUFReader(source)
    architecture = reader.fields["general.architecture"].contents()
    writer = gguf.GGUFWriter(target, architecture)
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", "general.file_type"):
            continue
        item = field.types[-1] if len(field.types) > 1 else None
        writer.add_key_value(name, field.contents(), field.types[0], sub_type=item)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, gguf.quants.dequantize(tensor.data, tensor.tensor_type))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Llama:
    """A model of llama.cpp with one sequence on the CPU."""

    def __init__(self, path):
        import numpy
        import xllamacpp
        from xllamacpp import xllamacpp as extension
        self.numpy, self.version = numpy, xllamacpp.__version__
        self.lib = lib = ctypes.CDLL(extension.__file__)
        pointer = ctypes.c_void_p
        for function, result in (
                ("llama_model_default_params", ModelParams),
                ("llama_context_default_params", ContextParams),
                ("llama_model_load_from_file", pointer), ("llama_init_from_model", pointer),
                ("llama_model_get_vocab", pointer), ("llama_get_memory", pointer),
                ("llama_get_logits_ith", ctypes.POINTER(ctypes.c_float)),
                ("llama_batch_init", Batch), ("llama_memory_clear", None)):
            getattr(lib, function).restype = result
        model = pointer(lib.llama_model_load_from_file(str(path).encode(), lib.llama_model_default_params()))
        params = lib.llama_context_default_params()
        params.n_ctx = params.n_batch = params.n_ubatch = CONTEXT
        self.context = pointer(lib.llama_init_from_model(model, params))
        self.vocabulary = pointer(lib.llama_model_get_vocab(model))
        self.columns = lib.llama_vocab_n_tokens(self.vocabulary)
        self.batch = lib.llama_batch_init(CONTEXT, 0, 1)

    def tokenize(self, text):
        """With BOS in front; control tokens in the text are parsed."""
        data = text.encode()
        ids = (ctypes.c_int32 * (len(data) + 8))()
        count = self.lib.llama_tokenize(self.vocabulary, data, len(data), ids, len(ids), True, True)
        return list(ids[:count])

    def run(self, ids, position, rows):
        """The last `rows` rows of logits of ids at their positions."""
        batch, count = self.batch, len(ids)
        if position == 0:
            self.lib.llama_memory_clear(ctypes.c_void_p(self.lib.llama_get_memory(self.context)), True)
        batch.n_tokens = count
        for i, token in enumerate(ids):
            batch.token[i], batch.pos[i], batch.n_seq_id[i] = token, position + i, 1
            batch.seq_id[i][0], batch.logits[i] = 0, i >= count - rows
        if self.lib.llama_decode(self.context, batch) != 0:
            raise RuntimeError("llama_decode failed")
        return [self.numpy.ctypeslib.as_array(self.lib.llama_get_logits_ith(self.context, i),
                                              (self.columns,)).copy()
                for i in range(count - rows, count)]


def greedy(llama, ids):
    """The continuation, and how far the logits of others were below at each of its tokens."""
    tokens, near_ties = [], []
    row = llama.run(ids, 0, 1)[0]
    while True:
        gaps = row.max() - row
        tokens.append(int(gaps.argmin()))
        near_ties += [[len(tokens) - 1, int(other), round(float(gaps[other]), 4)]
                      for other in llama.numpy.flatnonzero(gaps < NEAR_TIE) if other != tokens[-1]]
        if len(tokens) == TOKENS:
            return {"tokens": tokens, "near_ties": near_ties}
        row = llama.run(tokens[-1:], len(ids) + len(tokens) - 1, 1)[0]


def perplexity(llama, ids):
    """As `tandem score` defines it: windows of CONTEXT - 1 tokens, each behind a BOS of its own."""
    total = 0.0
    for begin in range(1, len(ids), CONTEXT - 1):
        scored = ids[begin:begin + CONTEXT - 1]
        window = ids[:1] + scored[:-1]
        for row, token in zip(llama.run(window, 0, len(window)), scored):
            row = row.astype(llama.numpy.float64)
            largest = row.max()
            total += largest + math.log(llama.numpy.exp(row - largest).sum()) - row[token]
    return math.exp(total / (len(ids) - 1))


def make_golden(arguments):
    cases = json.loads((GOLDEN / NAME).read_text())
    file = cases["text"]["file"]
    quantized = Llama(arguments.model)
    ids = quantized.tokenize((GOLDEN / file).read_text())
    text = {"file": file, "tokens": len(ids) - 1, "context": CONTEXT,
            "quantized_perplexity": perplexity(quantized, ids)}
    with tempfile.TemporaryDirectory(dir=arguments.out.parent) as scratch:
        whole = pathlib.Path(scratch) / "f32.gguf"
        dequantize(arguments.model, whole)
        llama = Llama(whole)
        text["perplexity"] = perplexity(llama, ids)
        prompts = []
        for prompt in cases["prompts"]:
            prompt_ids = llama.tokenize(prompt["text"])
            prompts.append({"text": prompt["text"], "ids": prompt_ids, **greedy(llama, prompt_ids)})
            print(f"{len(prompts)} of {len(cases['prompts'])} prompts", file=sys.stderr)
    arguments.out.write_text(dumps({"llama.cpp": f"xllamacpp {llama.version}",
                                    "model": cases["model"], "text": text, "prompts": prompts}))
    return 0


def dumps(made):
    """JSON with a line for each list of numbers."""
    lists = {}

    def fold(value):
        if isinstance(value, dict):
            return {key: fold(item) for key, item in value.items()}
        if isinstance(value, list) and value and isinstance(value[0], dict):
            return [fold(item) for item in value]
        if not isinstance(value, list):
            return value
        lists[f"list {len(lists)}"] = json.dumps(value)
        return f"list {len(lists) - 1}"

    text = json.dumps(fold(made), indent=1, ensure_ascii=False)
    for name, line in lists.items():
        text = text.replace(f'"{name}"', line, 1)
    return text + "\n"


# ---- Tandem ----

def tandem(arguments, command, *options):
    """The last line of a command's output, which is JSON."""
    run = subprocess.run([arguments.tandem, command, arguments.artifact, *options, "--json",
                          "--context", str(CONTEXT), "--device", arguments.device],
                         stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(run.stdout.splitlines()[-1])


def generate(arguments, ids, count):
    return tandem(arguments, "generate", "--ids", ",".join(map(str, ids)), "-n", str(count),
                  "--temperature", "0", "--ignore-eos")["ids"]


def compare_prompt(arguments, index, prompt):
    """Whether the tokens agree but for near-ties; prints what does not."""
    golden, agrees, ties, done = prompt["tokens"], True, 0, 0
    while done < TOKENS:
        made = generate(arguments, prompt["ids"] + golden[:done], TOKENS - done)
        same = next((i for i, token in enumerate(made) if token != golden[done + i]), len(made))
        done += same + 1
        if done > TOKENS:
            break
        gap = next((gap for at, token, gap in prompt["near_ties"]
                    if [at, [token]] == [done - 1, made[same:same + 1]]), None)
        agrees, ties = agrees and gap is not None, ties + 1
        print(f"prompt {index}, token {done - 1}: {made[same:same + 1]}, llama.cpp {golden[done - 1]}, "
              + ("DIFFERENT" if gap is None else f"a near-tie of {gap}"), flush=True)
    print(f"prompt {index}: {TOKENS - ties} of {TOKENS} tokens equal", flush=True)
    return agrees


def compare(arguments):
    if not pathlib.Path(arguments.artifact).is_dir():
        print(f"skipped: no {arguments.artifact}; `make demo MODEL=gemma3-270m` makes it")
        return SKIPPED
    golden = json.loads((GOLDEN / NAME).read_text())
    agrees = [compare_prompt(arguments, i, prompt) for i, prompt in enumerate(golden["prompts"])]
    text = golden["text"]
    score = tandem(arguments, "score", str(GOLDEN / text["file"]))
    off = score["perplexity"] / text["perplexity"] - 1
    print(f"perplexity of {score['tokens']} tokens ({text['tokens']}): {score['perplexity']:.4f}, "
          f"llama.cpp {text['perplexity']:.4f}: {100 * off:+.3f} % (as quantized "
          f"{text['quantized_perplexity']:.4f})")
    agrees += [score["tokens"] == text["tokens"], abs(off) < PERPLEXITY_TOLERANCE]
    return 0 if all(agrees) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    golden = commands.add_parser("golden", help="write what llama.cpp computes")
    golden.add_argument("model")
    golden.add_argument("--out", type=pathlib.Path, required=True)
    golden.set_defaults(run=make_golden)
    other = commands.add_parser("compare", help="compare Tandem with that")
    other.add_argument("tandem")
    other.add_argument("artifact")
    other.add_argument("--device", default="gpu", choices=("gpu", "cpu"))
    other.set_defaults(run=compare)
    arguments = parser.parse_args()
    return arguments.run(arguments)


if __name__ == "__main__":
    sys.exit(main())
