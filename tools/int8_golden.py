#!/usr/bin/env python3
"""Makes tests/golden/int8.*: what models compute with int8 activations, by Hugging Face transformers.

Owns what int8 activations are, and the cases that no rounding error changes. The prompts are those of
target.json, so that int8.* compares with target.* name by name; the small model is that of the
int8.json of an earlier run.

    tools/int8_golden.py --checkpoint CHECKPOINT --out FOLDER

CHECKPOINT is the Hugging Face folder of the atlas, whose weights are those of models/atlas. Needs
torch 2.11.0 and transformers 5.17.0, and four minutes of one core.

Where a value lies near the middle between two integers, a difference in its last bit changes the
integer, and that some 1e-3 of what follows, and so more integers. Programs that sum in different
orders differ in a prompt by as much as int8 does from f32. In a steady prompt no value lies near the
middle: each token is the one that keeps all values of its row the farthest away.
"""

import argparse
import contextlib
import json
import math
import pathlib

import numpy as np
import torch
import transformers

import golden

BLOCK = 32
# What int8 applies to; not the matrices of the per-layer inputs.
PRODUCTS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "lm_head")
CONTEXT = 512
CANDIDATES = 512  # prompts at once in the search for a steady one
STEADY_TOKENS = 5  # more than the product of few rows takes
SMALL_TOKENS = 12
GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden"


def scaled(x):
    """Blocks of x as they are before they are rounded to integers, and a block's step."""
    blocks = x.unflatten(-1, (-1, BLOCK))
    largest = blocks.abs().amax(-1, keepdim=True)
    return blocks * torch.where(largest > 0, 127 / largest, 0), largest / 127


def quantize(x):
    values, step = scaled(x)
    return (values.round() * step).flatten(-2)  # round: ties to even


def from_middle(x):
    """How far the values of each row keep from the middle between two integers."""
    values, _ = scaled(x)
    return 0.5 - (values - values.round()).abs().amax((-2, -1))


@contextlib.contextmanager
def int8(model, see=lambda x: None):
    """The products of a model take quantized activations; `see` is given them as they were."""
    def quantize_input(_module, inputs):
        see(inputs[0])
        return (quantize(inputs[0]), *inputs[1:])

    hooks = [module.register_forward_pre_hook(quantize_input)
             for name, module in model.named_modules() if name.split(".")[-1] in PRODUCTS]
    yield
    for hook in hooks:
        hook.remove()


# ---- steady prompts ----

def rows_from_middle(model, prompts):
    """For each row of each prompt, over all products."""
    seen = []
    with int8(model, lambda x: seen.append(from_middle(x))), torch.no_grad():
        model(input_ids=torch.tensor(prompts), use_cache=False)
    return torch.stack(seen).amin(0)


def steady_ids(model, count):
    """Distinct ordinary tokens, each the best behind those before it."""
    stops = model.config.eos_token_id
    tokens = list(range(max(stops if isinstance(stops, list) else [stops]) + 1,
                        model.config.vocab_size))
    ids = []
    while len(ids) < count:
        found = torch.cat([rows_from_middle(model, [[*ids, token] for token in
                                                    tokens[begin:begin + CANDIDATES]])[:, -1]
                           for begin in range(0, len(tokens), CANDIDATES)])
        ids.append(tokens.pop(int(found.argmax())))
    return ids


def steady_case(model, name, count, tensors):
    ids = steady_ids(model, count)
    with int8(model):
        run = golden.Recorder(model, torch.tensor([ids]))
    tensors[f"{name}.ids"] = torch.tensor(ids)
    tensors[f"{name}.logits"] = run.logits
    for index, layer in enumerate(run.layers):
        tensors[f"{name}.hidden.layer{index}"] = layer
    tensors[f"{name}.hidden.final"] = run.final
    return {"name": name, "from_middle": float(rows_from_middle(model, [ids]).min())}


def weight_on_grid(name, shape, seed):
    """As `weights` of the case says."""
    u = golden.hashed(name, math.prod(shape), seed).reshape(shape)
    if "embed_tokens" in name:
        steps, q = 127, np.trunc(u * np.float32(127))
    else:
        steps, q = 8, np.floor(u * np.float32(8))
    return torch.from_numpy(q * np.float32(np.float16(math.sqrt(3 / shape[1]) / steps)))


def make_small(case, tensors):
    model = golden.eager(golden.Gemma4ForCausalLM, golden.Gemma4TextConfig(**case["constructor"]))
    shapes = golden.fill_with_hashes(model, case["seed"])
    for name, weight in model.state_dict().items():
        if name in shapes and weight.dim() == 2:
            weight.copy_(weight_on_grid(name, shapes[name], case["seed"]))
    return {**case, "config": json.loads(json.dumps(model.config.to_dict())), "tensors": shapes,
            **steady_case(model, case["name"], SMALL_TOKENS, tensors)}


# ---- perplexity ----

def mean_nll(model, ids):
    """As `tandem score` defines it: windows of CONTEXT - 1 tokens, each behind a BOS of its own."""
    total = 0.0
    for begin in range(1, len(ids), CONTEXT - 1):
        scored = ids[begin:begin + CONTEXT - 1]
        window = torch.tensor([[ids[0], *scored[:-1]]])
        with torch.no_grad():
            logits = model(input_ids=window, use_cache=False).logits[0].double()
        total += float(torch.nn.functional.cross_entropy(logits, torch.tensor(scored),
                                                         reduction="sum"))
    return total / (len(ids) - 1)


def score(model, tokenizer, name, text):
    ids = tokenizer.encode(text, add_special_tokens=False)
    f32 = mean_nll(model, ids)
    with int8(model):
        return {"text": name, "tokens": len(ids) - 1, "context": CONTEXT, "mean_nll_f32": f32,
                "mean_nll": mean_nll(model, ids)}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the folder to write to")
    arguments = parser.parse_args()

    small = json.loads((GOLDEN / "int8.json").read_text())["small"]
    cases = {case["name"]: case["text"]
             for case in json.loads((GOLDEN / "target.json").read_text())["prompts"]}
    texts = {"long": cases["long"], "alice.txt": "<bos>" + (GOLDEN / "alice.txt").read_text()}
    tokenizer = transformers.AutoTokenizer.from_pretrained(arguments.checkpoint)
    model = golden.load(golden.Gemma4ForCausalLM, arguments.checkpoint)
    tensors = {}
    with int8(model):
        prompts = [golden.target_prompt(model, tokenizer, name, text, tensors)
                   for name, text in cases.items()]
    index = {**golden.provenance(), "prompts": prompts,
             "steady": steady_case(model, "steady", STEADY_TOKENS, tensors),
             "small": make_small(small, tensors),
             "texts": [score(model, tokenizer, name, text) for name, text in texts.items()]}
    golden.write("int8", index, golden.as_numpy(tensors), arguments.out)


if __name__ == "__main__":
    main()
