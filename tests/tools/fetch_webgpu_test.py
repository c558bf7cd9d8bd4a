"""tools/fetch_webgpu.py installs only what was promised, and downloads only what is missing."""

import hashlib
import pathlib
import sys
import tempfile
import unittest
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import fetch_webgpu

LIBRARY = b"a library"


class FetchWebgpu(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.wheel = pathlib.Path(scratch.name) / "pinned.whl"
        with zipfile.ZipFile(self.wheel, "w") as archive:
            archive.writestr("package/library.so", LIBRARY)
        self.folder = pathlib.Path(scratch.name) / "deps with a space"
        self.downloads = 0

    def pin(self, **changes):
        return fetch_webgpu.Pin(**{
            "path": "lib/library.so", "sha256": hashlib.sha256(LIBRARY).hexdigest(),
            "member": "package/library.so", "wheel": "package==1", "pip": (),
            "wheel_sha256": hashlib.sha256(self.wheel.read_bytes()).hexdigest(), **changes})

    def fetch(self, pin, machine="x86_64"):
        def get_wheel(_pin, _folder):
            self.downloads += 1
            return self.wheel
        return fetch_webgpu.fetch(self.folder, [pin], get_wheel, machine)

    def installed(self):
        """Every file in the folder: nothing half done may stay behind."""
        return {path.name: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}

    def test_installs_once(self):
        self.assertEqual(self.fetch(self.pin()), ["lib/library.so"])
        self.assertEqual(self.installed(), {"library.so": LIBRARY})
        self.assertEqual(self.fetch(self.pin()), [])
        self.assertEqual(self.downloads, 1)

    def test_replaces_a_damaged_file(self):
        (self.folder / "lib").mkdir(parents=True)
        (self.folder / "lib/library.so").write_bytes(b"a librarx")
        self.assertEqual(self.fetch(self.pin()), ["lib/library.so"])
        self.assertEqual(self.installed(), {"library.so": LIBRARY})

    def test_refuses_what_was_not_promised(self):
        zeros = "0" * 64
        wheel_sha256 = self.pin().wheel_sha256
        for changes, message in (
                ({"wheel_sha256": zeros}, f"expected sha256 {zeros}, found {wheel_sha256}"),
                ({"sha256": zeros}, f"expected sha256 {zeros}, found {self.pin().sha256}"),
                ({"member": "package/other.so"}, "cannot extract package/other.so")):
            with self.subTest(message):
                with self.assertRaises(fetch_webgpu.Refusal) as refusal:
                    self.fetch(self.pin(**changes))
                self.assertIn(message, str(refusal.exception))
                self.assertEqual(self.installed(), {})

    def test_a_refusal_keeps_what_was_there(self):
        (self.folder / "lib").mkdir(parents=True)
        (self.folder / "lib/library.so").write_bytes(b"older")
        with self.assertRaises(fetch_webgpu.Refusal):
            self.fetch(self.pin(wheel_sha256="0" * 64))
        self.assertEqual(self.installed(), {"library.so": b"older"})

    def test_refuses_another_processor(self):
        with self.assertRaisesRegex(fetch_webgpu.Refusal, "aarch64.*TANDEM_WEBGPU_LIBRARY"):
            self.fetch(self.pin(), machine="aarch64")
        self.assertEqual(self.downloads, 0)


if __name__ == "__main__":
    unittest.main()
