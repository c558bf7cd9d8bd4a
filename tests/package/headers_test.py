"""Headers that no source of the same name includes first compile alone.

usage: headers_test.py ROOT CXX OPTION...
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT, COMPILE = pathlib.Path(sys.argv[1]), [*sys.argv[2:], "-fsyntax-only", "-x", "c++"]


def compiles_alone(header):
    done = subprocess.run([*COMPILE, "-include", header, "/dev/null"], capture_output=True, text=True, check=False)
    return done.returncode == 0, done.stderr


class Headers(unittest.TestCase):
    def test_each_compiles_alone(self):
        headers = [path for folder in ("include", "src") for path in sorted((ROOT / folder).rglob("*.h"))
                   if not path.with_suffix(".cpp").is_file()]
        self.assertTrue(headers)
        for header in headers:
            with self.subTest(header.relative_to(ROOT).as_posix()):
                alone, message = compiles_alone(header)
                self.assertTrue(alone, message)

    def test_a_planted_header_that_does_not_is_found(self):
        with tempfile.NamedTemporaryFile("w", suffix=".h", encoding="utf-8") as header:
            header.write("#pragma once\nstd::string name();\n")
            header.flush()
            alone, message = compiles_alone(header.name)
            self.assertFalse(alone)
            self.assertIn(header.name, message)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
