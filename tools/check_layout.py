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
    "web": ("engine",),
}
PUBLIC = "tandem"  # include/tandem
WEB_BUILD = "cmake/web.cmake"
WEBGPU_HEADER = "webgpu.h"  # only the files src/gpu/native*.* know the library
# A write to a component of an element, which WGSL lets write the others too: in memory that invocations
# share those of another are lost.
COMPONENT_WRITE = re.compile(r"^(?!\s*//).*\](\[[^]]*\]|\.[xyzw])\s*[-+*/%&|^]?=(?!=)", re.MULTILINE)
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


def check_own_header(root, path):
    """A .cpp includes its own header before anything else: so the header compiles alone."""
    header = path.with_suffix(".h")
    if header.is_file():
        own = header.relative_to(root / "src").as_posix()
        if INCLUDE.findall(text_of(path))[:1] != [own]:
            yield f"does not include {own} first"


def times_listed(name, build_file):
    """How often targets name a source; its properties are none."""
    targets = re.sub(r"set_source_files_properties\([^)]*\)", "", text_of(build_file))
    return len(re.findall(rf"(?<![\w./-]){re.escape(name)}(?![\w.-])", targets))


def check_listed(root, path):
    """A .cpp is part of a program: its folder's CMakeLists.txt names it, or else the browser's build, and
    for a source of src/ once and nowhere else (tests/support: any program of tests/ does)."""
    top, folder = path.relative_to(root).parts[:2]
    inside = path.relative_to(root / top / folder).as_posix()
    if folder == "support":
        lists = (root / top).glob("*/CMakeLists.txt")
        times = sum(times_listed(f"../support/{inside}", build_file) for build_file in lists)
    else:
        times = times_listed(inside, root / top / folder / "CMakeLists.txt")
    for_the_browser = f"${{src}}/{folder}/{inside}" in text_of(root / WEB_BUILD)
    if not times and not for_the_browser:
        yield f"is not listed in the CMakeLists.txt of {top}/{folder}"
    if top == "src":
        others = [build_file for build_file in root.glob("*/*/CMakeLists.txt")
                  if re.search(rf"(?<![\w-]){folder}/{re.escape(inside)}(?![\w.-])", text_of(build_file))]
        times += len(others)
        if times > 1:
            yield f"is built by {times} targets, expected one"


def check_kernel(root, path):
    """A kernel of src/ops/<op>/ is recorded by a .cpp beside it, and the operator has a reference, a
    test and a line in docs/; a .wgsl of src/ops itself is included by a kernel. None writes a component
    of a vector in memory by itself."""
    for write in COMPONENT_WRITE.finditer(text_of(path)):
        yield f"writes a component of a vector in memory by itself: {write[0].strip()}"
    if path.parent == root / "src" / "ops":
        kernels = path.parent.glob("*/*.wgsl")
        if not any(f"//#include {path.name}" in text_of(kernel).split("\n") for kernel in kernels):
            yield "no kernel includes it"
        return
    op = path.parent.name
    if not any(f'"{path.stem}"' in text_of(source) for source in path.parent.glob("*.cpp")):
        yield f'no .cpp beside it names "{path.stem}"'
    for needed in (f"src/ops/{op}/{op}_reference.cpp", f"tests/ops/{op}_test.cpp"):
        if not (root / needed).is_file():
            yield f"{needed} is missing"
    if not any(f"`{path.stem}`" in text_of(page) for page in (root / "docs").rglob("*.md")):
        yield f"no page of docs/ has `{path.stem}`"


def violations(root):
    """All of them, as (path from the root, what is wrong)."""
    for path in sources(root, "include", "src", "tests"):
        name = path.relative_to(root)
        found = list(check_form(path))
        if name.parts[0] != "tests":
            found += check_includes(root, path)
        if name.parts[0] == "src" and path.suffix == ".cpp":
            found += check_own_header(root, path)
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
