#!/usr/bin/env python3
"""Embeds WGSL kernels into C++: writes the file that implements kernels() and closure_digest() of
src/gpu/wgsl.h. The output depends on the files' names and bytes alone, whatever their order, folder
or the locale.

A line `//#include part.wgsl` appends what several kernels share, a file of the folder above the
kernel's. It goes to the end: WGSL's declarations have no order, and lines keep their numbers.

    embed_wgsl.py OUTPUT.cpp KERNEL.wgsl...
"""

import hashlib
import os
import re
import sys

TIERS = ("subgroups", "dp4a", "f16")
BINDING = re.compile(
    r"@group\(\s*(\d+)\s*\)\s*@binding\(\s*(\d+)\s*\)\s*var\s*<\s*([\w\s,]+?)\s*>"
)
INCLUDE = re.compile(r"^//#include ([a-z][a-z0-9_]*\.wgsl)$", re.MULTILINE | re.ASCII)
ENTRY_POINT = re.compile(r"@compute\b[^{};]*?\bfn\s+(\w+)")
ACCESS = {"uniform": "uniform", "storage,read": "read", "storage,read_write": "read_write"}
CLOSURE_STAMP = "tandem kernel closure "


class KernelError(Exception):
    """A kernel that cannot be embedded; the message names the file and the line."""


def check_directives(name, text):
    """Refuses malformed `//#if tier ... //#else ... //#end` and `//#include part.wgsl`, and bindings
    and parts that depend on a tier."""
    opened = None  # the line of the open //#if, and whether its //#else was seen
    seen_else = False
    for number, line in enumerate(text.split("\n"), 1):
        where = f"{name}:{number}"
        words = line.split()
        if opened and "@binding" in line:
            raise KernelError(f"{where}: a binding inside //#if; every tier has the same bindings")
        if "//#" not in line:
            continue
        if words[:1] == ["//#if"] and len(words) == 2:
            if words[1] not in TIERS:
                raise KernelError(f"{where}: tier {words[1]!r}, expected one of {', '.join(TIERS)}")
            if opened:
                raise KernelError(f"{where}: //#if inside the //#if of line {opened}")
            opened, seen_else = number, False
        elif words == ["//#else"]:
            if not opened or seen_else:
                raise KernelError(f"{where}: //#else without its //#if")
            seen_else = True
        elif words == ["//#end"]:
            if not opened:
                raise KernelError(f"{where}: //#end without its //#if")
            opened = None
        elif opened or not INCLUDE.fullmatch(line):
            raise KernelError(
                f"{where}: expected `//#if tier`, `//#else`, `//#end` or, outside them, "
                f"`//#include part.wgsl` alone on a line, found {line.strip()!r}"
            )
    if opened:
        raise KernelError(f"{name}:{opened}: //#if without its //#end")


def bindings_of(name, code):
    """The access of each binding of group 0, which must be numbered from 0 without gaps."""
    found = {}
    matches = BINDING.findall(code)
    if len(matches) != code.count("@binding"):
        raise KernelError(
            f"{name}: a binding is not written as `@group(0) @binding(N) var<...>` with "
            "uniform, `storage, read` or `storage, read_write`"
        )
    for group, number, space in matches:
        access = ACCESS.get(re.sub(r"\s", "", space))
        if group != "0":
            raise KernelError(f"{name}: binding {number} is in group {group}, expected 0")
        if access is None:
            raise KernelError(f"{name}: binding {number} is var<{space}>, expected one of "
                              "uniform; storage, read; storage, read_write")
        if int(number) in found:
            raise KernelError(f"{name}: binding {number} is declared twice")
        found[int(number)] = access
    for number in range(len(found)):
        if number not in found:
            raise KernelError(f"{name}: binding {number} is missing")
    return [found[number] for number in range(len(found))]


def read_text(path):
    """The text of one file, or a KernelError where it cannot be embedded exactly."""
    file_name = os.path.basename(path)
    with open(path, "rb") as file:
        data = file.read()
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError as error:
        raise KernelError(f"{file_name}: byte {error.start} is not ASCII") from error
    if "\r" in text:
        raise KernelError(f"{file_name}: has carriage returns; end lines with \\n alone")
    if ')wgsl"' in text:
        raise KernelError(f"{file_name}: has )wgsl\", which ends its string in C++")
    check_directives(file_name, text)
    if "/*" in code_of(text):
        raise KernelError(f"{file_name}: has a block comment; use // comments")
    return text


def code_of(text):
    return re.sub(r"//[^\n]*", "", text)


def included(path, text):
    """The parts that the text of the kernel at `path` includes, one after another."""
    parts = ""
    for name in INCLUDE.findall(text):
        part = read_text(os.path.join(os.path.dirname(path), os.pardir, name))
        if "//#" in part:
            raise KernelError(f"{name}: has directives; only kernels do, not what they include")
        parts += part
    return parts


def read_kernel(path):
    """Returns (name, text, sha256, bindings) of one kernel, or raises KernelError."""
    file_name = os.path.basename(path)
    name, extension = os.path.splitext(file_name)
    if extension != ".wgsl" or not re.fullmatch(r"[a-z][a-z0-9_]*", name, re.ASCII):
        raise KernelError(f"{file_name}: expected a name like my_kernel.wgsl")
    text = read_text(path)
    text += included(path, text)
    code = code_of(text)
    entry_points = ENTRY_POINT.findall(code)
    if entry_points != ["main"]:
        raise KernelError(f"{file_name}: expected one entry point, main; found {entry_points}")
    digest = hashlib.sha256(text.encode("ascii")).hexdigest()
    return name, text, digest, bindings_of(file_name, code)


def generate(paths):
    """The text of the generated C++ file."""
    kernels = sorted(read_kernel(path) for path in paths)
    for one, other in zip(kernels, kernels[1:]):
        if one[0] == other[0]:
            raise KernelError(f"{one[0]}.wgsl: two files have this name")
    closure = hashlib.sha256()
    arrays, rows = [], []
    for name, text, digest, bindings in kernels:
        closure.update(f"{name} {digest}\n".encode("ascii"))
        bindings_span = "{}"
        if bindings:
            bindings_span = f"{name}_bindings"
            values = ", ".join(f"Access::{access}" for access in bindings)
            arrays.append(f"constexpr Access {bindings_span}[] = {{{values}}};\n")
        rows.append(f'    Wgsl{{"{name}", R"wgsl({text})wgsl",\n'
                    f'         "{digest}", {bindings_span}}},\n')
    return (
        "// Generated by tools/embed_wgsl.py from src/ops/*/*.wgsl. Do not edit.\n"
        "#include \"gpu/wgsl.h\"\n\n"
        "namespace tandem::gpu {\nnamespace {\n\n"
        + "".join(arrays)
        + f"\nconstexpr std::array<Wgsl, {len(kernels)}> embedded = {{\n"
        + "".join(rows)
        + "};\n\n}  // namespace\n\n"
        "std::span<const Wgsl> kernels() { return embedded; }\n\n"
        # Whole in a program's bytes, so that a release can be held against its modules.
        f'constexpr std::string_view stamp = "{CLOSURE_STAMP}{closure.hexdigest()}";\n'
        f'std::string_view closure_digest() {{ return stamp.substr({len(CLOSURE_STAMP)}); }}\n\n'
        "}  // namespace tandem::gpu\n"
    )


def main(arguments):
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        output = generate(arguments[1:])
    except (KernelError, OSError) as error:
        print(f"embed_wgsl: {error}", file=sys.stderr)
        return 1
    with open(arguments[0], "w", encoding="ascii", newline="\n") as file:
        file.write(output)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
