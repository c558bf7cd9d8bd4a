#!/usr/bin/env python3
"""Makes a GGUF file of random Q4_0 weights in the geometry of an artifact, for measuring llama.cpp beside Tandem.

    bench/peers/random_gguf.py ARTIFACT MODEL.gguf

ARTIFACT: its folder; `tandem synthesize --geometry e2b -o ARTIFACT` makes one. Only the target; its tokenizer has a token for each id
and a merge, and is good for nothing else.
"""

import argparse
import json
import math
import pathlib
import random
import struct
import sys

F32, Q4_0 = 0, 2
ALIGNMENT = 32
CHUNK_ROWS = 4096
UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
NORMAL, CONTROL, BYTE = 1, 3, 6  # token types


def text(value):
    data = value.encode("utf-8")
    return struct.pack("<Q", len(data)) + data


def plain(kind, value):
    return text(value) if kind == STRING else struct.pack({UINT32: "<I", INT32: "<i", FLOAT32: "<f", BOOL: "<?"}[kind], value)


def entry(key, kind, value):
    if isinstance(value, list):
        return text(key) + struct.pack("<IIQ", ARRAY, kind, len(value)) + b"".join(plain(kind, item) for item in value)
    return text(key) + struct.pack("<I", kind) + plain(kind, value)


def layer_shapes(config):
    """Of each layer: kind, head_dim, KV heads, MLP width, whether it owns KV."""
    kinds, shared = config["layer_types"], config["num_kv_shared_layers"]
    for index, kind in enumerate(kinds):
        own = config.get("per_layer_config", {}).get(str(index), {})
        full = kind == "full_attention"
        owns = index < len(kinds) - shared
        head_dim = own.get("head_dim", config.get("global_head_dim") if full else config["head_dim"])
        kv_heads = own.get("num_key_value_heads", config["num_key_value_heads"])
        wide = config["use_double_wide_mlp"] and not owns
        yield full, head_dim, kv_heads, config["intermediate_size"] * (2 if wide else 1), owns


def metadata(config):
    rope = config["rope_parameters"]
    shapes = list(layer_shapes(config))
    full_dim = next(dim for full, dim, *_ in shapes if full)
    sliding_dim = next(dim for full, dim, *_ in shapes if not full)
    geometry = [
        ("block_count", UINT32, len(shapes)), ("context_length", UINT32, config["max_position_embeddings"]),
        ("embedding_length", UINT32, config["hidden_size"]), ("attention.head_count", UINT32, config["num_attention_heads"]),
        ("attention.layer_norm_rms_epsilon", FLOAT32, config["rms_norm_eps"]),
        ("attention.sliding_window", UINT32, config["sliding_window"]),
        ("attention.key_length", UINT32, full_dim), ("attention.value_length", UINT32, full_dim),
        ("attention.key_length_swa", UINT32, sliding_dim), ("attention.value_length_swa", UINT32, sliding_dim),
        ("rope.dimension_count", UINT32, full_dim), ("rope.dimension_count_swa", UINT32, sliding_dim),
        ("rope.freq_base", FLOAT32, rope["full_attention"]["rope_theta"]),
        ("rope.freq_base_swa", FLOAT32, rope["sliding_attention"]["rope_theta"]),
        ("embedding_length_per_layer_input", UINT32, config["hidden_size_per_layer_input"]),
        ("feed_forward_length", INT32, [width for *_, width, _ in shapes]),
        ("attention.head_count_kv", INT32, [heads for _, _, heads, *_ in shapes]),
        ("attention.sliding_window_pattern", BOOL, [not full for full, *_ in shapes]),
        ("attention.shared_kv_layers", UINT32, config["num_kv_shared_layers"]),
        ("final_logit_softcapping", FLOAT32, config["final_logit_softcapping"])]
    special = {config["pad_token_id"]: "<pad>", config["bos_token_id"]: "<bos>"}
    special.update({token: ("<eos>", "<turn|>")[i] for i, token in enumerate(config["eos_token_id"][:2])})
    vocabulary = config["vocab_size"]
    tokens, kinds, rest = [], [], ["a", "b", "ab", "\u2581"] + [f"<0x{byte:02X}>" for byte in range(256)]
    for token in range(vocabulary):
        spelling = special.get(token) or (rest.pop(0) if rest else f"t{token}")
        tokens.append(spelling)
        kinds.append(CONTROL if token in special else BYTE if spelling.startswith("<0x") else NORMAL)
    tokenizer = [
        ("model", STRING, "gemma4"), ("tokens", STRING, tokens), ("token_type", INT32, kinds), ("merges", STRING, ["a b"]),
        ("bos_token_id", UINT32, config["bos_token_id"]), ("eos_token_id", UINT32, config["eos_token_id"][0]),
        ("padding_token_id", UINT32, config["pad_token_id"]), ("add_bos_token", BOOL, True), ("add_space_prefix", BOOL, False)]
    return ([entry("general.architecture", STRING, "gemma4")] + [entry(f"gemma4.{key}", kind, value) for key, kind, value in geometry] +
            [entry(f"tokenizer.ggml.{key}", kind, value) for key, kind, value in tokenizer])


def tensors(config):
    """Name, and shape of a matrix [rows, columns] or a vector [columns]."""
    hidden, per_layer, heads = config["hidden_size"], config["hidden_size_per_layer_input"], config["num_attention_heads"]
    shapes = list(layer_shapes(config))
    yield "token_embd.weight", (config["vocab_size"], hidden)
    if per_layer:
        yield "per_layer_token_embd.weight", (config["vocab_size"], len(shapes) * per_layer)
        yield "per_layer_model_proj.weight", (len(shapes) * per_layer, hidden)
        yield "per_layer_proj_norm.weight", (per_layer,)
    yield "output_norm.weight", (hidden,)
    yield "rope_freqs.weight", (next(dim for full, dim, *_ in shapes if full) // 2,)
    for index, (_, dim, kv_heads, width, owns) in enumerate(shapes):
        layer = [("attn_norm", (hidden,)), ("attn_q", (heads * dim, hidden)), ("attn_q_norm", (dim,)),
                 ("attn_output", (hidden, heads * dim)), ("post_attention_norm", (hidden,)), ("ffn_norm", (hidden,)),
                 ("ffn_gate", (width, hidden)), ("ffn_up", (width, hidden)), ("ffn_down", (hidden, width)),
                 ("post_ffw_norm", (hidden,)), ("layer_output_scale", (1,))]
        if owns:
            layer += [("attn_k", (kv_heads * dim, hidden)), ("attn_v", (kv_heads * dim, hidden)), ("attn_k_norm", (dim,))]
        if per_layer:
            layer += [("inp_gate", (per_layer, hidden)), ("proj", (hidden, per_layer)), ("post_norm", (hidden,))]
        for name, shape in layer:
            yield f"blk.{index}.{name}.weight", shape


def size(shape):
    return shape[0] * shape[1] // 32 * 18 if len(shape) == 2 else 4 * shape[0]


def padding(count):
    return -count % ALIGNMENT


def data(config, name, shape, source):
    """The bytes of a tensor, piece by piece. Products keep the size of their input, as `tandem synthesize` has it."""
    if name == "rope_freqs.weight":
        rotated = int(config["rope_parameters"]["full_attention"]["partial_rotary_factor"] * shape[0])
        yield struct.pack(f"<{shape[0]}f", *[1.0] * rotated + [1e30] * (shape[0] - rotated))
        return
    if len(shape) == 1:
        yield struct.pack(f"<{shape[0]}f", *[1.0] * shape[0])
        return
    rows, columns = shape
    low, high = struct.pack("<e", 1 / math.sqrt(21.5 * columns))
    for first in range(0, rows, CHUNK_ROWS):
        blocks = min(CHUNK_ROWS, rows - first) * columns // 32
        piece = bytearray(source.randbytes(18 * blocks))
        piece[0::18], piece[1::18] = bytes([low]) * blocks, bytes([high]) * blocks
        yield piece


def main(arguments):
    parser = argparse.ArgumentParser(description="Makes a GGUF file of random weights in an artifact's geometry.")
    parser.add_argument("artifact", type=pathlib.Path)
    parser.add_argument("model", type=pathlib.Path)
    flags = parser.parse_args(arguments)
    config = json.loads((flags.artifact / "manifest.json").read_text(encoding="utf-8"))["config"]
    if config["model_type"] != "gemma4_text":
        sys.exit(f"{flags.artifact}: expected a Gemma 4, found {config['model_type']}")
    pairs, names, offset = metadata(config), list(tensors(config)), 0
    header = b"GGUF" + struct.pack("<IQQ", 3, len(names), len(pairs)) + b"".join(pairs)
    for name, shape in names:
        header += text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *reversed(shape))
        header += struct.pack("<IQ", Q4_0 if len(shape) == 2 else F32, offset)
        offset += size(shape) + padding(size(shape))
    source = random.Random(1)
    with open(flags.model, "xb") as file:
        file.write(header + bytes(padding(len(header))))
        for name, shape in names:
            for piece in data(config, name, shape, source):
                file.write(piece)
            file.write(bytes(padding(size(shape))))


if __name__ == "__main__":
    main(sys.argv[1:])
