"""docs/read_artifact.py opens the atlas, and refuses copies with a byte, a field or a file that is wrong."""

import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ATLAS = ROOT / "models" / "atlas"


def read(*folders):
    return subprocess.run([sys.executable, ROOT / "docs" / "read_artifact.py", *folders],
                          capture_output=True, text=True)


def canonical(value):
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


class ReadArtifact(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.copy = pathlib.Path(self.folder.name) / "atlas"
        shutil.copytree(ATLAS, self.copy)

    def tearDown(self):
        self.folder.cleanup()

    def refused(self, word):
        result = read(self.copy)
        self.assertNotEqual(result.returncode, 0, word)
        self.assertIn(word, result.stderr)

    # The reader finds what its receipt says even where that was changed to agree with a change.
    def change_receipt(self, change):
        receipt = json.loads((self.copy / "receipt.json").read_text())
        change(receipt)
        del receipt["digest"]
        receipt["digest"] = hashlib.sha256(canonical(receipt).encode()).hexdigest()
        (self.copy / "receipt.json").write_text(canonical(receipt))

    def test_the_atlas(self):
        manifest = (ATLAS / "manifest.json").read_bytes()
        result = read(ATLAS)
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = result.stdout.splitlines()
        self.assertEqual(len(lines), len(json.loads(manifest)["tensors"]) + 1)
        self.assertIn("embedding q4_0 [8192, 256]", lines)
        self.assertEqual(lines[-1], "digest " + hashlib.sha256(manifest).hexdigest())

    def test_a_byte_of_every_file(self):
        for file in sorted(ATLAS.iterdir()):
            with self.subTest(file.name):
                data = bytearray(file.read_bytes())
                for place in (0, len(data) // 2, len(data) - 1):
                    data[place] ^= 1
                    (self.copy / file.name).write_bytes(data)
                    data[place] ^= 1
                    self.assertNotEqual(read(self.copy).returncode, 0, place)
                (self.copy / file.name).write_bytes(data)
        self.assertEqual(read(self.copy).returncode, 0)

    def test_another_form_of_the_same_json(self):
        for name in ("manifest.json", "receipt.json"):
            text = (ATLAS / name).read_text()
            (self.copy / name).write_text(text + "\n")
            self.refused(name)
            (self.copy / name).write_text(text)

    def test_files_missing_and_added(self):
        (self.copy / "notes.txt").write_text("mine")
        self.refused("atlas")
        (self.copy / "notes.txt").unlink()
        (self.copy / "tokenizer.bin").unlink()
        self.refused("atlas")

    def test_sources_that_the_manifest_does_not_bind(self):
        self.change_receipt(lambda receipt: None)
        self.assertEqual(read(self.copy).returncode, 0)
        self.change_receipt(lambda receipt: receipt["target"]["sources"].pop())
        self.refused("target")

    # A file and its entry in the receipt agree, the manifest says another.
    def test_files_that_the_manifest_does_not_bind(self):
        for file in json.loads((ATLAS / "receipt.json").read_text())["files"]:
            name = file["file"]
            if name == "manifest.json":
                continue
            with self.subTest(name):
                data = (ATLAS / name).read_bytes() + b" "
                (self.copy / name).write_bytes(data)

                def swap(receipt):
                    entry = next(entry for entry in receipt["files"] if entry["file"] == name)
                    entry.update(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())

                self.change_receipt(swap)
                self.refused("atlas/receipt.json: files")
                shutil.copytree(ATLAS, self.copy, dirs_exist_ok=True)

    def test_another_recipe_or_part(self):
        self.change_receipt(lambda receipt: receipt["recipe"].update(matrix="f16"))
        self.refused("atlas/receipt.json: recipe")
        shutil.copytree(ATLAS, self.copy, dirs_exist_ok=True)
        self.change_receipt(lambda receipt: receipt.update(target=None))
        self.refused("atlas/receipt.json: target")

    def test_symbolic_links(self):
        for file in ATLAS.iterdir():
            with self.subTest(file.name):
                (self.copy / file.name).unlink()
                (self.copy / file.name).symlink_to(file)
                self.refused(f"atlas/{file.name}: a regular file")
                (self.copy / file.name).unlink()
                shutil.copy(file, self.copy)

    def test_every_refusal_is_one_line(self):
        (self.copy / "shard-00000.safetensors").write_bytes(b"")
        (self.copy / "empty").mkdir()
        lists = self.copy / "lists"
        lists.mkdir()
        (lists / "receipt.json").write_text("[]\n")
        for folders in ([], [ATLAS] * 3, ["/nowhere/\n"], [self.copy], [self.copy / "empty"], [lists]):
            with self.subTest(folders):
                result = read(*folders)
                self.assertEqual(result.returncode, 1)
                self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
                self.assertNotIn("Traceback", result.stderr)

    def test_an_assistant_that_is_not_attached(self):
        result = read(ATLAS, self.copy)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("attached_to", result.stderr)


if __name__ == "__main__":
    unittest.main()
