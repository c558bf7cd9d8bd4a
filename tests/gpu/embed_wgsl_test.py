"""The WGSL embedder: the same output however it is called, and every malformed kernel refused.

    embed_wgsl_test.py PATH/TO/embed_wgsl.py
"""

import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

EMBEDDER = pathlib.Path(sys.argv.pop(1)).resolve()

GOOD = """// Adds.
//#if subgroups
enable subgroups;
//#else
//#end
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(0) var<uniform> step: u32;
@group(0) @binding(2)
var<storage,read> x: array<f32>; // not @binding(3)
@compute @workgroup_size(64)
fn main() { y[0] = x[step]; }
"""

PLAIN = "@compute @workgroup_size(1) fn main() {}\n"


class EmbedWgsl(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, path, text):
        path = self.folder / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return path

    def embed(self, *paths, cwd=None, **environment):
        """Returns the output's bytes, or raises AssertionError with the message."""
        output = self.folder / "kernels.cpp"
        output.unlink(missing_ok=True)
        done = subprocess.run([sys.executable, EMBEDDER, output, *paths], cwd=cwd, text=True,
                              env={**os.environ, **environment}, capture_output=True, check=False)
        if done.returncode != 0:
            self.assertFalse(output.exists(), "a refusal leaves no output")
            raise AssertionError(done.stderr)
        return output.read_bytes()

    def assert_refused(self, text, *parts, name="kernel.wgsl"):
        with self.assertRaises(AssertionError) as refusal:
            self.embed(self.write(name, text))
        for part in (name, *parts):
            self.assertIn(part, str(refusal.exception))
        self.assertNotIn("Traceback", str(refusal.exception))

    def test_embeds_the_source_and_its_bindings(self):
        output = self.embed(self.write("add.wgsl", GOOD)).decode()
        self.assertIn(GOOD, output)
        self.assertIn("{Access::uniform, Access::read_write, Access::read}", output)

    def test_embeds_nothing(self):
        self.assertIn("std::array<Wgsl, 0>", self.embed().decode())

    def test_ignores_order_locale_and_path(self):
        names = ("add_b", "add", "add2", "z", "a")
        here = [self.write(f"here/{name}.wgsl", GOOD + f"// {name}\n") for name in names]
        there = [self.write(f"there/{name}/{name}.wgsl", GOOD + f"// {name}\n") for name in names]
        expected = self.embed(*here)
        self.assertEqual(self.embed(*reversed(here)), expected)
        self.assertEqual(self.embed(*there), expected)
        relative = [path.relative_to(self.folder / "here") for path in here]
        self.assertEqual(self.embed(*relative, cwd=self.folder / "here"), expected)
        for locale in ("C", "C.UTF-8", "POSIX", "tr_TR.UTF-8", "en_US.ISO-8859-1"):
            self.assertEqual(self.embed(*here, LC_ALL=locale, LANG=locale, PYTHONUTF8="0"), expected)
        self.assertEqual(self.embed(*here, PYTHONHASHSEED="7"), expected)
        self.assertNotEqual(self.embed(*here[1:]), expected)

    def test_refuses_two_kernels_of_one_name(self):
        paths = [self.write(f"{folder}/add.wgsl", GOOD) for folder in ("one", "two")]
        self.embed(paths[0])
        with self.assertRaisesRegex(AssertionError, "add.wgsl: two files"):
            self.embed(*paths)

    def test_refuses_malformed_bindings(self):
        replace = GOOD.replace
        self.assert_refused(replace("@binding(2)", "@binding(3)"), "binding 2 is missing")
        self.assert_refused(replace("@binding(0)", "@binding(4)"), "binding 0 is missing")
        self.assert_refused(replace("@binding(2)", "@binding(1)"), "binding 1 is declared twice")
        self.assert_refused(replace("@group(0) @binding(2)", "@group(1) @binding(2)"), "group 1")
        self.assert_refused(replace("var<storage,read>", "var<storage>"), "var<storage>")
        self.assert_refused(replace("var<storage,read>", "var<storage, write>"), "storage, write")
        self.assert_refused(replace("var<storage,read> x: array<f32>", "var x: sampler"), "binding")
        self.assert_refused(replace("//#else", "@group(0) @binding(3) var<uniform> z: u32;"),
                            ":4", "inside //#if")

    def test_appends_what_a_kernel_includes(self):
        self.write("one.wgsl", "// One.\nfn one() {}\n")
        self.write("two.wgsl", "fn two() {}\n")
        text = "// Adds.\n//#include two.wgsl\n//#include one.wgsl\n" + PLAIN
        whole = text + "fn two() {}\n// One.\nfn one() {}\n"
        output = self.embed(self.write("add/add.wgsl", text)).decode()
        self.assertIn(f'R"wgsl({whole})wgsl"', output)
        self.assertIn(hashlib.sha256(whole.encode()).hexdigest(), output)
        self.write("two.wgsl", "fn two() {} // changed\n")
        self.assertNotEqual(self.embed(self.folder / "add/add.wgsl").decode(), output)

    def test_refuses_what_cannot_be_included(self):
        def refused(name, *parts):
            add = self.write("add/add.wgsl", f"//#include {name}\n{PLAIN}")
            with self.assertRaises(AssertionError) as refusal:
                self.embed(add)
            for part in parts:
                self.assertIn(part, str(refusal.exception))
            self.assertNotIn("Traceback", str(refusal.exception))

        refused("absent.wgsl", "absent.wgsl")
        refused("../add.wgsl", "add.wgsl:1", "//#include ../add.wgsl")
        refused("part.txt", "add.wgsl:1", "//#include part.txt")
        for text, *parts in (
            ("//#include other.wgsl\n", "directives"),
            ("//#if f16\n//#end\n", "directives"),
            ("/* block */\n", "block comment"),
            ("fn one() {}\r\n", "carriage return"),
        ):
            with self.subTest(text):
                self.write("part.wgsl", text)
                refused("part.wgsl", "part.wgsl", *parts)
        self.write("part.wgsl", PLAIN)
        refused("part.wgsl", "add.wgsl", "one entry point")

    def test_refuses_malformed_directives(self):
        self.embed(self.write("plain.wgsl", PLAIN))
        for text, *parts in (
            ("//#if subgroups\n", ":1", "without its //#end"),
            ("//#if subgroup\n//#end\n", ":1", "'subgroup'", "subgroups"),
            ("//#if\n//#end\n", ":1", "'//#if'"),
            ("//#if f16 dp4a\n//#end\n", ":1"),
            ("\n//#else\n", ":2", "//#else without"),
            ("//#end\n", ":1", "//#end without"),
            ("//#if f16\n//#else\n//#else\n//#end\n", ":3", "//#else without"),
            ("//#if f16\n//#if dp4a\n//#end\n//#end\n", ":2", "inside the //#if of line 1"),
            ("//#if f16\n//#end f16\n", ":2"),
            ("//#endif\n", ":1", "//#endif"),
            ("x; //#if f16\n//#end\n", ":1"),
            ("x; //#include part.wgsl\n", ":1"),
            ("//#include\n", ":1"),
            ("//#if f16\n//#include part.wgsl\n//#end\n", ":2", "outside them"),
        ):
            with self.subTest(text):
                self.assert_refused(text + PLAIN, *parts)

    def test_refuses_other_entry_points(self):
        self.assert_refused(GOOD.replace("fn main", "fn add"), "main", "add")
        self.assert_refused(GOOD.replace("@compute", ""), "main")
        self.assert_refused(GOOD + "@compute @workgroup_size(1) fn other() {}\n", "other")

    def test_refuses_what_cannot_be_embedded_exactly(self):
        self.assert_refused(GOOD.replace("\n", "\r\n"), "carriage return")
        self.assert_refused(GOOD.replace("Adds", "Ad\u00e9"), "ASCII")
        self.assert_refused(GOOD + "/* block */", "block comment")
        self.assert_refused(GOOD + '// )wgsl"\n', ')wgsl"')
        self.assert_refused(GOOD, "my_kernel.wgsl", name="Add-2.wgsl")
        with self.assertRaisesRegex(AssertionError, "absent.wgsl"):
            self.embed(self.folder / "absent.wgsl")


if __name__ == "__main__":
    unittest.main()
