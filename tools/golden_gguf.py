#!/usr/bin/env python3
"""Makes tests/golden/gguf_blocks.json: random blocks of each quantized type that Tandem reads, and
the values that llama.cpp's own Python package gives them.

    pip install gguf numpy
    tools/golden_gguf.py tests/golden/gguf_blocks.json
"""

import json
import sys

import gguf
import numpy

BLOCKS = 2
# Where a block's fp16 numbers lie: scales, and minimums where there are any.
HALVES = {"Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,),
          "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,)}


def golden(name, random):
    kind = gguf.GGMLQuantizationType[name]
    _, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = random.integers(0, 256, (BLOCKS, size), dtype=numpy.uint8)
    for at in HALVES[name]:
        halves = random.uniform(-0.01, 0.01, BLOCKS).astype(numpy.float16)
        blocks[:, at:at + 2] = halves[:, None].view(numpy.uint8)
    values = gguf.quants.dequantize(blocks, kind).astype(numpy.float32)
    return {"blocks": blocks.tobytes().hex(), "values": values.tobytes().hex()}


def main():
    random = numpy.random.default_rng(1)
    result = {name: golden(name, random) for name in HALVES}
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
