#!/usr/bin/env python3
"""Checks what the compiler does not: the layers of src/ and the form of its files.

    tools/check_layout.py [FOLDER]    lists every violation in a source tree; fails if there is one
"""

import pathlib
import re
import sys

# What each folder of src/ may include, besides itself and the public headers. What those may
# include, it may too.
IMPORTS = {
    "base": (),
    "spec": ("base",),
    "gpu": ("base",),
    "ops": ("gpu", "spec"),
    "model": ("ops",),
    "text": ("base",),
    "artifact": ("spec",),
    "exporter": ("artifact", "text"),
    "engine": ("model", "text", "artifact"),
    "cli": ("engine", "exporter"),
}
PUBLIC = "tandem"  # include/tandem
WEBGPU_HEADER = "webgpu.h"  # only the files src/gpu/native*.* know the library
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


def reachable(folder):
    """The folders that a folder may include, itself among them."""
    return {folder}.union(*(reachable(below) for below in IMPORTS[folder]))


def sources(root, *folders):
    """The C++ and WGSL files of some folders, in a fixed order."""
    return sorted(path for folder in folders for path in (root / folder).rglob("*")
                  if path.suffix in (".h", ".cpp", ".wgsl"))


def text_of(path):
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def check_form(path):
    text = text_of(path)
    says_elsewhere = path.suffix == ".cpp" and path.with_suffix(".h").is_file()
    if not says_elsewhere and not text.startswith(("//", "/*")):
        yield "does not begin with a comment that says what it owns"
    if path.suffix == ".h" and not re.search(r"^#pragma once$", text, re.MULTILINE):
        yield "has no #pragma once"


def check_includes(root, path):
    """The includes of a file of src/ or include/ point downward."""
    parts = path.relative_to(root).parts
    folder = parts[1] if parts[0] == "src" else None
    if folder and folder not in IMPORTS:
        yield f"src/{folder} is not in the list of folders"
        return
    allowed = reachable(folder) if folder else set()
    for include in INCLUDE.findall(text_of(path)):
        head, slash, _ = include.partition("/")
        if include == WEBGPU_HEADER:
            if folder != "gpu" or not path.name.startswith("native"):
                yield f"includes {include}, which only src/gpu/native* may"
        elif head in IMPORTS and slash:
            if head not in allowed:
                yield f"includes {include}: {folder or 'a public header'} may not import {head}"
        elif head == ".." or (path.parent / include).is_file():
            yield f"includes {include}: say the path from src/"


def check_listed(root, path):
    """A .cpp is part of a program: its folder's CMakeLists.txt names it (tests/support: any does)."""
    top, folder = path.relative_to(root).parts[:2]
    if folder == "support":
        name, lists = path.relative_to(root / top), (root / top).glob("*/CMakeLists.txt")
    else:
        name, lists = path.relative_to(root / top / folder), [root / top / folder / "CMakeLists.txt"]
    named = re.compile(rf"(?<![\w.-]){re.escape(name.as_posix())}(?![\w.-])")
    if not any(named.search(text_of(path)) for path in lists):
        yield f"is not listed in the CMakeLists.txt of {top}/{folder}"


def check_kernel(root, path):
    """A kernel of src/ops/<op>/ is recorded by a .cpp beside it and tested; a .wgsl of src/ops itself
    is included by a kernel."""
    if path.parent == root / "src" / "ops":
        kernels = path.parent.glob("*/*.wgsl")
        if not any(f"//#include {path.name}" in text_of(kernel).split("\n") for kernel in kernels):
            yield "no kernel includes it"
        return
    op = path.parent.name
    if not any(f'"{path.stem}"' in text_of(source) for source in path.parent.glob("*.cpp")):
        yield f'no .cpp beside it names "{path.stem}"'
    if not (root / "tests" / "ops" / f"{op}_test.cpp").is_file():
        yield f"tests/ops/{op}_test.cpp is missing"


def violations(root):
    """All of them, as (path from the root, what is wrong)."""
    for path in sources(root, "include", "src", "tests"):
        name = path.relative_to(root)
        found = list(check_form(path))
        if name.parts[0] != "tests":
            found += check_includes(root, path)
        if path.suffix == ".cpp" and len(name.parts) > 2:
            found += check_listed(root, path)
        if path.suffix == ".wgsl" and name.parts[:2] == ("src", "ops"):
            found += check_kernel(root, path)
        for violation in found:
            yield name.as_posix(), violation


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__ + "/../..").resolve()
    if not (root / "src").is_dir():
        sys.exit(f"{root}: there is no folder src")
    count = 0
    for name, violation in violations(root):
        print(f"{name}: {violation}")
        count += 1
    print(f"{count} violations")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
