#!/usr/bin/env python3
"""Makes the golden files of tests/golden with Hugging Face transformers (f32, CPU, eager attention).

Owns what the files mean. The cases (texts, configs, seeds) are read from the JSON files of an
earlier run; everything else in them, and every tensor, is computed.

    tools/golden.py --checkpoint CHECKPOINT --assistant ASSISTANT --out FOLDER
        writes the files to FOLDER
    tools/golden.py --checkpoint CHECKPOINT --assistant ASSISTANT --check
        compares with the files of --cases

CHECKPOINT and ASSISTANT are the Hugging Face folders of the atlas and of its assistant; `--only
geometry` and `--only gemma3` need neither. Needs torch 2.11 and transformers 5.17.
"""

import argparse
import json
import math
import pathlib
import sys

import numpy as np
import safetensors.numpy
import safetensors.torch
import torch
import transformers
from transformers.models.gemma3.configuration_gemma3 import Gemma3TextConfig
from transformers.models.gemma3.modeling_gemma3 import Gemma3ForCausalLM, Gemma3RMSNorm
from transformers.models.gemma4.configuration_gemma4 import Gemma4TextConfig
from transformers.models.gemma4.modeling_gemma4 import Gemma4ForCausalLM
from transformers.models.gemma4_assistant.configuration_gemma4_assistant import Gemma4AssistantConfig
from transformers.models.gemma4_assistant.modeling_gemma4_assistant import Gemma4AssistantForCausalLM

GREEDY_STEPS = 64
DRAFT_STEPS = 2
MTP_TOKENS = 48
# Of a tensor's largest magnitude: sums in another order differ by less.
TENSOR_TOLERANCE = 1e-5
# Of numbers in the JSON files, which are differences of logits of magnitude below 30.
NUMBER_TOLERANCE = 3e-4
# What says how a file was made, not what is in it.
PROVENANCE = ("transformers", "torch")


def provenance():
    return {"transformers": transformers.__version__, "torch": torch.__version__,
            "dtype": "float32", "attention": "eager", "set": "dev"}


class Recorder:
    """Runs a target model once and keeps what its layers, final norm and inputs were."""

    def __init__(self, model, ids):
        self.layers = []
        hooks = [layer.register_forward_hook(
            lambda _module, _inputs, output: self.layers.append(output[0].clone()))
            for layer in model.model.layers]
        with torch.no_grad():
            output = model.model(input_ids=ids, use_cache=False, return_shared_kv_states=True)
            self.final = output.last_hidden_state[0]
            self.shared_kv = getattr(output, "shared_kv_states", None)  # none in Gemma 3
            self.logits = model(input_ids=ids, use_cache=False).logits[0]
        for hook in hooks:
            hook.remove()
        self.layers = self.layers[:len(model.model.layers)]


# ---- target: the trained atlas ----

def greedy_continuation(model, ids):
    """The logits row behind each of GREEDY_STEPS argmax tokens, with a KV cache; stop ids ignored."""
    rows, step_ids, cache = [], ids, None
    with torch.no_grad():
        for _ in range(GREEDY_STEPS):
            output = model(input_ids=step_ids, past_key_values=cache, use_cache=True)
            cache = output.past_key_values
            rows.append(output.logits[0, -1])
            step_ids = rows[-1].argmax().view(1, 1)
    return torch.stack(rows)


def target_prompt(model, tokenizer, name, text, tensors):
    ids = torch.tensor([tokenizer.encode(text, add_special_tokens=False)])
    count = ids.shape[1]
    positions = sorted({0, count // 3, 2 * count // 3, count - 1})
    run = Recorder(model, ids)
    steps = greedy_continuation(model, ids)
    greedy = steps.argmax(-1)
    top2 = steps.topk(2)
    margins = (top2.values[:, 0] - top2.values[:, 1]).tolist()
    stops = [step for step, token in enumerate(greedy.tolist())
             if token in model.config.eos_token_id]
    first_stop = stops[0] if stops else None
    with torch.no_grad():
        whole = torch.cat([ids, greedy[None, :-1]], dim=1)
        uncached = model(input_ids=whole, use_cache=False).logits[0, count - 1:]

    tensors[f"{name}.ids"] = ids[0]
    tensors[f"{name}.logits"] = run.logits[positions]
    tensors[f"{name}.greedy"] = greedy
    tensors[f"{name}.top2"] = top2.indices
    tensors[f"{name}.top2_logits"] = top2.values
    if name == "short":
        hidden_tensors(model, ids, run, tensors)
    return {
        "name": name, "text": text, "n_tokens": count, "logit_positions": positions,
        "greedy_text": tokenizer.decode(greedy), "first_stop_step": first_stop,
        "min_margin": min(margins),
        "min_margin_before_stop": min(margins[:None if first_stop is None else first_stop + 1]),
        "agrees_uncached": bool((uncached.argmax(-1) == greedy).all()),
        "max_diff_uncached": float((uncached - steps).abs().max()),
    }


def hidden_tensors(model, ids, run, tensors):
    body = model.model
    with torch.no_grad():
        embedding = body.embed_tokens(ids)
        inputs = body.project_per_layer_inputs(embedding, body.get_per_layer_inputs(ids, embedding))
    tensors["short.hidden.embed"] = embedding[0]
    tensors["short.hidden.per_layer_inputs"] = inputs[0]
    for index, layer in enumerate(run.layers):
        tensors[f"short.hidden.layer{index}"] = layer
    tensors["short.hidden.final"] = run.final
    for kind, (key, value) in run.shared_kv.items():
        tensors[f"short.kv.{kind}.key"] = key[0]
        tensors[f"short.kv.{kind}.value"] = value[0]


def load(model_class, checkpoint):
    return model_class.from_pretrained(
        checkpoint, dtype=torch.float32, attn_implementation="eager").eval()


def make_target(cases, arguments):
    checkpoint = arguments.checkpoint
    tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint)
    model = load(Gemma4ForCausalLM, checkpoint)
    tensors = {}
    prompts = [target_prompt(model, tokenizer, case["name"], case["text"], tensors)
               for case in cases["prompts"]]
    return {**provenance(), "prompts": prompts, "note": cases["note"]}, tensors


# ---- mtp: the trained atlas with its assistant ----

def draft_step(target, assistant, token, hidden, position, shared_kv):
    """The assistant's input, its logits row, and the hidden state for its next step."""
    with torch.no_grad():
        embedding = target.model.embed_tokens(torch.tensor([[token]]))
        inputs = torch.cat([embedding, hidden.view(1, 1, -1)], dim=-1)
        output = assistant(inputs_embeds=inputs, position_ids=torch.tensor([[position]]),
                           shared_kv_states=shared_kv)
    return inputs[0, 0], output.logits[0, 0], output.last_hidden_state[0, 0]


def clean_round(target, assistant, ids):
    """A round of the reference protocol; the last of `ids` is the newest token, which has no KV."""
    position, stops = len(ids) - 1, target.config.eos_token_id
    run = Recorder(target, torch.tensor([ids[:-1]]))
    token, hidden, drafts, steps, inputs, hiddens = ids[-1], run.final[-1], [], [], [], []
    while len(drafts) < DRAFT_STEPS and (not drafts or drafts[-1] not in stops):
        given, row, hidden = draft_step(target, assistant, token, hidden, position, run.shared_kv)
        token = int(row.argmax())
        top8 = row.topk(8)
        drafts.append(token)
        inputs.append(given)
        hiddens.append(hidden)
        steps.append({"position": position, "kv_len_full": position,
                      "top8": top8.indices.tolist(), "top8_logits": top8.values.tolist(),
                      "draft": token, "min_logit": float(row.min())})
    with torch.no_grad():
        rows = target(input_ids=torch.tensor([ids + drafts]), use_cache=False).logits[0, position:]
    verified = rows.argmax(-1).tolist()
    accepted = 0
    while accepted < len(drafts) and drafts[accepted] == verified[accepted]:
        accepted += 1
    made = {"drafts": drafts, "target": verified, "accepted": accepted, "steps": steps}
    return made, torch.stack(inputs), torch.stack(hiddens)


def round_stats(rounds):
    first = [entry for entry in rounds if entry["accepted"] >= 1]
    both = [entry for entry in first if len(entry["drafts"]) == 2]
    return {"rounds": len(rounds), "draft1": len(first) / len(rounds),
            "draft2_given_1": sum(entry["accepted"] == 2 for entry in both) / max(1, len(both)),
            "tokens_per_round": sum(entry["accepted"] + 1 for entry in rounds) / len(rounds)}


def clean_trace(target, assistant, name, ids, plain, tensors):
    stops, generated, rounds = target.config.eos_token_id, [plain[0]], []
    while len(generated) < MTP_TOKENS and generated[-1] not in stops:
        made, inputs, hidden = clean_round(target, assistant, ids + generated)
        if not rounds:
            tensors[f"{name}.clean.first_round_inputs"] = inputs
            tensors[f"{name}.clean.first_round_hidden"] = hidden
        rounds.append(made)
        for token in made["target"][:made["accepted"] + 1]:
            if generated[-1] not in stops:
                generated.append(token)
    return {"first_token": plain[0], "generated": generated,
            "equals_plain": generated[:len(plain)] == plain, "stats": round_stats(rounds),
            "rounds": rounds}


def make_mtp(cases, arguments):
    """`hf`, what transformers' own loop did, is kept as it was recorded."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(arguments.checkpoint)
    target = load(Gemma4ForCausalLM, arguments.checkpoint)
    assistant = load(Gemma4AssistantForCausalLM, arguments.assistant)
    recorded = safetensors.torch.load_file(arguments.cases / "mtp.safetensors")
    tensors = {name: value for name, value in recorded.items() if ".hf." in name}
    traces = []
    for case in cases["traces"]:
        ids = tokenizer.encode(case["text"], add_special_tokens=False)
        plain = greedy_continuation(target, torch.tensor([ids])).argmax(-1).tolist()[:MTP_TOKENS]
        stops = [step for step, token in enumerate(plain) if token in target.config.eos_token_id]
        plain = plain[:stops[0] + 1] if stops else plain
        traces.append({**case, "ids": ids, "plain": plain,
                       "clean": clean_trace(target, assistant, case["name"], ids, plain, tensors)})
    return {**provenance(), "k": DRAFT_STEPS, "traces": traces, "note": cases["note"]}, tensors


# ---- geometry: models with hashed weights ----

def hashed(name, count, seed):
    """`count` values in [-1, 1) that depend on the name and the seed alone."""
    digest = 0x811C9DC5
    for byte in name.encode():
        digest = (digest ^ byte) * 0x01000193 & 0xFFFFFFFF
    x = np.arange(count, dtype=np.uint32) + np.uint32(digest ^ seed * 0x9E3779B1 & 0xFFFFFFFF)
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x7FEB352D)
    x ^= x >> np.uint32(15)
    x *= np.uint32(0x846CA68B)
    x ^= x >> np.uint32(16)
    return (x >> np.uint32(8)).astype(np.float32) * np.float32(2**-23) - np.float32(1)


def hashed_weight(name, shape, seed):
    u = hashed(name, math.prod(shape), seed).reshape(shape)
    if len(shape) == 2:
        return u * np.float32(math.sqrt(3 / shape[1]))
    weight = np.float32(1) + np.float32(0.25) * u
    if name.endswith(("q_norm.weight", "k_norm.weight")):
        weight *= np.float32(shape[0] ** -0.25)
    return weight


def hashed_ids(count, vocabulary, seed):
    unit = hashed("ids", count, seed) * np.float32(0.5) + np.float32(0.5)
    ids = 4 + np.floor(unit * np.float32(vocabulary - 4)).astype(np.int64)
    ids[0] = 2
    return ids


def fill_with_hashes(model, seed):
    """Returns the shapes of the tensors that were filled; the head is tied to the embedding."""
    state = model.state_dict()
    shapes = {name: list(value.shape) for name, value in sorted(state.items())
              if name != "lm_head.weight" and value.is_floating_point()}
    for name, shape in shapes.items():
        state[name].copy_(torch.from_numpy(hashed_weight(name, shape, seed)))
    for module in model.modules():
        if isinstance(module, Gemma3RMSNorm):
            module.weight.data -= 1  # which it adds again
    return shapes


def eager(model_class, config):
    config._attn_implementation = "eager"
    return model_class(config).to(torch.float32).eval()


def geometry_case(case, model_class, config_class, tensors):
    name, seed, positions = case["name"], case["seed"], case["positions"]
    model = eager(model_class, config_class(**case["constructor"]))
    shapes = fill_with_hashes(model, seed)
    ids = torch.from_numpy(hashed_ids(case["n_tokens"], model.config.vocab_size, seed))[None]
    run = Recorder(model, ids)
    tensors[f"{name}.ids"] = ids[0]
    tensors[f"{name}.hidden"] = torch.stack([layer[positions] for layer in run.layers])
    tensors[f"{name}.final"] = run.final[positions]
    tensors[f"{name}.logits"] = run.logits[positions]
    made = {**case, "config": json.loads(json.dumps(model.config.to_dict())), "tensors": shapes}
    if "assistant" in case:
        made["assistant"] = [assistant_case(case, assistant, model, run, tensors)
                             for assistant in case["assistant"]]
    return made


def assistant_case(target_case, case, target, run, tensors):
    config = Gemma4AssistantConfig(
        text_config=Gemma4TextConfig(**case["text_config"]),
        backbone_hidden_size=target.config.hidden_size, num_centroids=case["num_centroids"],
        centroid_intermediate_top_k=case["centroid_intermediate_top_k"],
        use_ordered_embeddings=case["kind"] == "ordered")
    model = eager(Gemma4AssistantForCausalLM, config)
    shapes = fill_with_hashes(model, case["seed"])
    if case["kind"] == "ordered":
        order = hashed("token_ordering", model.vocab_size, target_case["seed"])
        model.masked_embedding.token_ordering.copy_(
            torch.from_numpy(np.argsort(order, kind="stable")))

    first_token = int(run.logits[-1].argmax())
    position = run.logits.shape[0]
    token, hidden, logits, hiddens = first_token, run.final[-1], [], []
    for _ in range(DRAFT_STEPS):
        _, row, hidden = draft_step(target, model, token, hidden, position, run.shared_kv)
        hiddens.append(hidden)
        logits.append(row)
        token = int(row.argmax())
    prefix = f"{target_case['name']}.assistant.{case['kind']}"
    tensors[f"{prefix}.hidden"] = torch.stack(hiddens)
    tensors[f"{prefix}.logits"] = torch.stack(logits)
    return {**case, "first_token": first_token, "position": position,
            "drafts": [int(row.argmax()) for row in logits], "tensors": shapes}


def make_cases(cases, model_class, config_class):
    tensors = {}
    made = [geometry_case(case, model_class, config_class, tensors) for case in cases["cases"]]
    return {**provenance(), "weights": cases["weights"], "cases": made}, tensors


def make_geometry(cases, _arguments):
    return make_cases(cases, Gemma4ForCausalLM, Gemma4TextConfig)


def make_gemma3(cases, _arguments):
    return make_cases(cases, Gemma3ForCausalLM, Gemma3TextConfig)


# ---- tokenizer ----

def make_tokenizer(cases, arguments):
    tokenizer = transformers.AutoTokenizer.from_pretrained(arguments.checkpoint)
    made = []
    for text in (case["text"] for case in cases["cases"]):
        ids = tokenizer.encode(text, add_special_tokens=False)
        made.append({"text": text, "ids": ids, "ids_with_special": tokenizer.encode(text),
                     "decoded": tokenizer.decode(ids)})
    messages = cases["chat"]["messages"]
    rendered = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    chat = {"messages": messages, "rendered": rendered,
            "ids": tokenizer.encode(rendered, add_special_tokens=False)}
    return {**provenance(), "cases": made, "chat": chat}, {}


# ---- writing and comparing ----

def as_numpy(tensors):
    """What the files hold: F32 and I32."""
    return {name: value.numpy().astype(np.float32 if value.is_floating_point() else np.int32)
            for name, value in tensors.items()}


def json_differences(made, golden, where):
    if isinstance(made, dict) and isinstance(golden, dict):
        for key in sorted(made.keys() | golden.keys()):
            if key not in made or key not in golden:
                yield f"{where}.{key}: only in {'golden' if key in golden else 'made'}"
            else:
                yield from json_differences(made[key], golden[key], f"{where}.{key}")
    elif isinstance(made, list) and isinstance(golden, list) and len(made) == len(golden):
        for index, pair in enumerate(zip(made, golden)):
            yield from json_differences(*pair, f"{where}[{index}]")
    elif isinstance(made, float) and isinstance(golden, float):
        if abs(made - golden) > NUMBER_TOLERANCE:
            yield f"{where}: {made}, golden {golden}"
    elif made != golden:
        yield f"{where}: {made!r}, golden {golden!r}"


def tensor_differences(made, golden):
    for name in sorted(made.keys() | golden.keys()):
        if name not in made or name not in golden:
            yield f"{name}: only in {'golden' if name in golden else 'made'}"
            continue
        ours, theirs = made[name], golden[name]
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            yield f"{name}: {ours.dtype}{ours.shape}, golden {theirs.dtype}{theirs.shape}"
            continue
        difference = np.abs(ours.astype(np.float64) - theirs)
        exact = ours.dtype == np.int32
        bound = 0 if exact else TENSOR_TOLERANCE * np.abs(theirs).max()
        if difference.max() > bound:
            at = np.unravel_index(difference.argmax(), difference.shape)
            yield f"{name}{list(map(int, at))}: {ours[at]}, golden {theirs[at]}, bound {bound:.3g}"


def check(name, index, tensors, folder):
    """Prints each difference; returns whether there is none."""
    golden_index = json.loads((folder / f"{name}.json").read_text())
    made_with = ", ".join(f"{key} {golden_index.pop(key)} (here {index.pop(key)})"
                          for key in PROVENANCE)
    differences = list(json_differences(index, golden_index, name))
    if tensors:
        golden_tensors = safetensors.numpy.load_file(folder / f"{name}.safetensors")
        differences += tensor_differences(tensors, golden_tensors)
    for difference in differences:
        print(difference)
    print(f"{name}: {len(tensors)} tensors, {len(differences)} differences; golden: {made_with}")
    return not differences


def write(name, index, tensors, folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(index, indent=1, ensure_ascii=False) + "\n")
    if tensors:
        safetensors.numpy.save_file(tensors, folder / f"{name}.safetensors")


MAKERS = {"target": make_target, "mtp": make_mtp, "geometry": make_geometry,
          "gemma3": make_gemma3, "tokenizer": make_tokenizer}

WITHOUT_CHECKPOINT = ("geometry", "gemma3")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", type=pathlib.Path)
    parser.add_argument("--assistant", type=pathlib.Path)
    parser.add_argument("--cases", type=pathlib.Path, help="where the cases are (tests/golden)",
                        default=pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden")
    parser.add_argument("--out", type=pathlib.Path, help="the folder to write to")
    parser.add_argument("--check", action="store_true", help="compare with the files of --cases")
    parser.add_argument("--only", choices=MAKERS, help="one kind of file (all)")
    arguments = parser.parse_args()
    if not arguments.out and not arguments.check:
        parser.error("say --out FOLDER, --check, or both")
    if arguments.only not in WITHOUT_CHECKPOINT and not (arguments.checkpoint and arguments.assistant):
        parser.error("say --checkpoint and --assistant")

    agrees = True
    for name in [arguments.only] if arguments.only else MAKERS:
        cases = json.loads((arguments.cases / f"{name}.json").read_text())
        index, tensors = MAKERS[name](cases, arguments)
        tensors = as_numpy(tensors)
        if arguments.out:
            write(name, index, tensors, arguments.out)
        if arguments.check:
            agrees = check(name, index, tensors, arguments.cases) and agrees
    return 0 if agrees else 1


if __name__ == "__main__":
    sys.exit(main())
