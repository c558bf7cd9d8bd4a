"""Installs a build, moves what was installed, and builds and runs examples/answer with it, far from the source tree.

usage: install_test.py CMAKE SOURCE BUILD
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

CMAKE, SOURCE, BUILD = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
ADAPTER = os.environ.get("TANDEM_ADAPTER")
ATLAS = SOURCE / "models" / "atlas"


def run(*command, cwd):
    return subprocess.run([str(part) for part in command], cwd=cwd, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.folder.name)
        cls.prefix = cls.root / "moved" / "tandem"
        first = cls.root / "prefix"
        cls.expect(CMAKE, "--install", BUILD, "--prefix", first)
        cls.prefix.parent.mkdir()
        first.rename(cls.prefix)
        cls.example = cls.root / "example"

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def expect(cls, *command):
        done = run(*command, cwd=cls.root)
        if done.returncode != 0:
            raise AssertionError(f"{command} gave {done.returncode}\n{done.stdout}")
        return done.stdout

    def configure(self, source, build):
        return run(CMAKE, "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}", cwd=self.root)

    def test_headers_are_those_of_the_api(self):
        names = lambda folder: sorted(path.name for path in folder.iterdir())
        self.assertEqual(names(self.prefix / "include"), ["tandem"])
        self.assertEqual(names(self.prefix / "include" / "tandem"), names(SOURCE / "include" / "tandem"))

    def test_nothing_installed_knows_where_it_came_from(self):
        for path in self.prefix.rglob("*.cmake"):
            for place in SOURCE, BUILD, self.root / "prefix":
                self.assertNotIn(str(place), path.read_text(), path)

    def test_the_program_runs(self):
        version = self.expect(self.prefix / "bin" / "tandem", "--version")
        self.assertRegex(version, r"^tandem \d+\.\d+\.\d+\n$")

    def test_a_program_of_its_own_answers(self):
        configured = self.configure(SOURCE / "examples" / "answer", self.example)
        self.assertEqual(configured.returncode, 0, configured.stdout)
        self.expect(CMAKE, "--build", self.example)
        answer = self.example / "answer"
        flags = [] if ADAPTER else ["--software"]
        text = self.expect(answer, *flags, ATLAS, "What is the capital of France?")
        self.assertTrue(text.startswith("The capital of France is Paris.\n"), text)
        self.assertIn("ended by stop_id", text)

        refused = run(answer, *flags, self.root / "none", "Why?", cwd=self.root)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("[not_found]", refused.stdout)
        self.assertEqual(run(answer, ATLAS, cwd=self.root).returncode, 2)

    def test_another_minor_version_is_refused(self):
        source = self.root / "newer"
        source.mkdir()
        for version, fits in ("0.1", True), ("0.2", False), ("1.0", False):
            (source / "CMakeLists.txt").write_text(
                "cmake_minimum_required(VERSION 3.16)\nproject(newer LANGUAGES CXX)\n"
                f"find_package(tandem {version} REQUIRED)\n")
            done = self.configure(source, self.root / f"newer-{version}")
            self.assertEqual(done.returncode == 0, fits, done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
