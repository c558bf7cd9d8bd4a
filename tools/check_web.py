#!/usr/bin/env python3
"""Checks the browser's modules in a folder: what they import and export, what they must not hold, how large they are.

    tools/check_web.py build/web                 the eight files
    tools/check_web.py build/web build/web-2     and that another build has the same bytes
"""

import glob
import gzip
import hashlib
import os
import re
import sys

import embed_wgsl

MODULES = ("webgpu_llama", "webgpu_llama.profile", "gemma4_mtp", "gemma4_mtp.profile")
MAX_GZIP_BYTES = 400 * 1024  # of the js and wasm of gemma4_mtp

# What wasm calls in JavaScript: the GPU, its memory, and the end of a program that is broken.
IMPORTS = {
    "abort", "emscripten_memcpy_big", "emscripten_resize_heap", "tandem_gpu_bind", "tandem_gpu_close", "tandem_gpu_compile",
    "tandem_gpu_free_buffer", "tandem_gpu_make_buffer", "tandem_gpu_submit", "tandem_gpu_unbind", "tandem_gpu_write",
}
# What JavaScript calls in wasm, and what Emscripten always exports.
EXPORTS = {
    "__errno_location", "dynCall_iij", "dynCall_viiiji", "stackAlloc", "stackRestore", "stackSave",
    "__indirect_function_table", "__wasm_call_ctors", "free", "malloc", "memory", "tandem_abort", "tandem_begin",
    "tandem_check", "tandem_clock", "tandem_close", "tandem_describe", "tandem_encode", "tandem_encode_chat",
    "tandem_finish", "tandem_generation", "tandem_gpu_event", "tandem_ids", "tandem_next_prompt", "tandem_open",
    "tandem_plan", "tandem_prepare", "tandem_reply", "tandem_reset", "tandem_running", "tandem_session",
    "tandem_session_close", "tandem_session_prepare", "tandem_start", "tandem_stats", "tandem_step", "tandem_times",
    "tandem_watch",
}
# In JavaScript: evaluated text, files, threads.
FORBIDDEN_JS = (r"\beval\b", r"new Function\b", r"\bFS\b", r"\bSharedArrayBuffer\b", r"\bAtomics\b", r"\brequire\(")
# Operators that only drafts take, by names that nothing else has.
MTP_NAMES = (b"gathered_linear", b"linear_add_norm", b"q_project")
OPS = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "src", "ops")
MTP_OPERATORS = ("draft", "gathered_linear", "linear_add_norm", "q_project", "scatter", "top_k")


class WebError(Exception):
    """A module that is not as it must be."""


def leb128(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def name_at(data, at):
    count, at = leb128(data, at)
    return data[at:at + count].decode(), at + count


def skip_limits(data, at):
    flags, at = leb128(data, at)
    _, at = leb128(data, at)
    return leb128(data, at)[1] if flags & 1 else at


def imports_of(data):
    """The names of a wasm import section."""
    count, at = leb128(data, 0)
    names = set()
    for _ in range(count):
        _, at = name_at(data, at)
        name, at = name_at(data, at)
        names.add(name)
        kind = data[at]
        at += 1
        if kind == 0:  # a function's type
            _, at = leb128(data, at)
        elif kind == 1:  # a table
            at = skip_limits(data, at + 1)
        elif kind == 2:  # a memory
            at = skip_limits(data, at)
        else:  # a global
            at += 2
    return names


def exports_of(data):
    """The names of a wasm export section."""
    count, at = leb128(data, 0)
    names = set()
    for _ in range(count):
        name, at = name_at(data, at)
        names.add(name)
        _, at = leb128(data, at + 1)
    return names


def sections(wasm):
    """{number: bytes} of the sections of a wasm file."""
    if wasm[:8] != b"\0asm\1\0\0\0":
        raise WebError("not a wasm file")
    found, at = {}, 8
    while at < len(wasm):
        number = wasm[at]
        count, at = leb128(wasm, at + 1)
        found[number] = wasm[at:at + count]
        at += count
    return found


def check_names(what, found, expected):
    if found != expected:
        raise WebError(f"{what}: unexpected {sorted(found - expected)}, missing {sorted(expected - found)}")


def read(folder, name):
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()


def check_plain(wasm):
    """That no operator of drafts is there, neither its code nor its kernels."""
    for name in MTP_NAMES:
        if name in wasm:
            raise WebError(f"{name.decode()} is in it")
    for operator in MTP_OPERATORS:
        for path in glob.glob(os.path.join(OPS, operator, "*.wgsl")):
            name, _, digest, _ = embed_wgsl.read_kernel(path)
            if digest.encode() in wasm:
                raise WebError(f"the kernel {name} is in it")


def check_module(folder, module):
    wasm, js = read(folder, f"{module}.wasm"), read(folder, f"{module}.js")
    parts = sections(wasm)
    check_names("imports", imports_of(parts.get(2, b"\0")), IMPORTS)
    check_names("exports", exports_of(parts.get(7, b"\0")), EXPORTS)
    text = js.decode()
    for pattern in FORBIDDEN_JS:
        if re.search(pattern, text):
            raise WebError(f"its js has {pattern}")
    if not re.search(r"export default \w+;?\s*$", text):
        raise WebError("its js is not an ES module with a factory")
    if ("timestampWrites" in text) != module.endswith(".profile"):
        raise WebError("timestamps are for profile builds, and only for them")
    if module.startswith("webgpu_llama"):
        check_plain(wasm)
    return len(gzip.compress(wasm, 9)), len(gzip.compress(js, 9))


def digests(folder):
    files = (f"{module}.{kind}" for module in MODULES for kind in ("js", "wasm"))
    return {name: hashlib.sha256(read(folder, name)).hexdigest() for name in files}


def main(arguments):
    if not 1 <= len(arguments) <= 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder = arguments[0]
    try:
        expected = {f"{module}.{kind}" for module in MODULES for kind in ("js", "wasm")}
        check_names(folder, set(os.listdir(folder)) - {"release.json"}, expected)
        for module in MODULES:
            try:
                wasm_bytes, js_bytes = check_module(folder, module)
                if module == "gemma4_mtp" and wasm_bytes + js_bytes > MAX_GZIP_BYTES:
                    raise WebError(f"{wasm_bytes + js_bytes} bytes gzip, expected at most {MAX_GZIP_BYTES}")
            except WebError as error:
                raise WebError(f"{module}: {error}") from None
            print(f"{module}: wasm {wasm_bytes} and js {js_bytes} bytes gzip")
        if len(arguments) == 2 and digests(folder) != digests(arguments[1]):
            raise WebError(f"{arguments[1]} has other bytes than {folder}")
    except (WebError, OSError) as error:
        print(f"check_web: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
