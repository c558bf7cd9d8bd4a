#!/usr/bin/env python3
"""tools/check_web.py accepts modules as they must be and refuses each planted fault."""

import os
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir)
sys.path.insert(0, os.path.join(ROOT, "tools"))
import check_web  # noqa: E402
import embed_wgsl  # noqa: E402


def leb(value):
    out = b""
    while True:
        byte = value & 0x7F
        value >>= 7
        out += bytes([byte | (0x80 if value else 0)])
        if not value:
            return out


def text(name):
    return leb(len(name)) + name.encode()


def section(number, body):
    return bytes([number]) + leb(len(body)) + body


def wasm(imports=check_web.IMPORTS, exports=check_web.EXPORTS, data=b""):
    functions = b"".join(text("env") + text(name) + b"\0\0" for name in sorted(imports))
    names = b"".join(text(name) + b"\0\0" for name in sorted(exports))
    return (b"\0asm\1\0\0\0" + section(2, leb(len(imports)) + functions)
            + section(7, leb(len(exports)) + names) + section(11, data))


JS = b"var create = () => {};\nexport default create;"
PROFILE_JS = b"timestampWrites;\n" + JS


class CheckWeb(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        for module in check_web.MODULES:
            self.write(f"{module}.wasm", wasm())
            self.write(f"{module}.js", PROFILE_JS if module.endswith("profile") else JS)

    def tearDown(self):
        self.folder.cleanup()

    def write(self, name, content):
        with open(os.path.join(self.folder.name, name), "wb") as file:
            file.write(content)

    def check(self):
        return check_web.main([self.folder.name])

    def test_modules_as_they_must_be(self):
        self.assertEqual(self.check(), 0)
        self.write("release.json", b"{}")
        self.assertEqual(self.check(), 0)
        self.assertEqual(check_web.main([self.folder.name, self.folder.name]), 0)

    def test_planted_faults(self):
        _, _, digest, _ = embed_wgsl.read_kernel(os.path.join(ROOT, "src/ops/top_k/top_k.wgsl"))
        faults = {
            "gemma4_mtp.wasm": [
                wasm(imports=check_web.IMPORTS | {"fd_write"}),
                wasm(imports=check_web.IMPORTS - {"tandem_gpu_submit"}),
                wasm(exports=check_web.EXPORTS | {"main"}),
                wasm(exports=check_web.EXPORTS - {"tandem_step"}),
                wasm(data=os.urandom(check_web.MAX_GZIP_BYTES)),
                b"not wasm",
            ],
            "webgpu_llama.wasm": [wasm(data=b"gathered_linear"), wasm(data=digest.encode())],
            "gemma4_mtp.js": [
                b"eval('1');" + JS,
                b"new Function('x');" + JS,
                b"FS.open();" + JS,
                b"timestampWrites;" + JS,
                b"var create;",
            ],
            "gemma4_mtp.profile.js": [JS],
            "extra.js": [b""],
        }
        for name, contents in faults.items():
            for content in contents:
                with self.subTest(name=name, content=content[:40]):
                    self.tearDown()
                    self.setUp()
                    self.write(name, content)
                    self.assertEqual(self.check(), 1)

    def test_other_bytes(self):
        other = self.folder
        self.setUp()
        self.write("gemma4_mtp.js", b" " + JS)
        self.assertEqual(check_web.main([self.folder.name, other.name]), 1)
        other.cleanup()


if __name__ == "__main__":
    unittest.main()
