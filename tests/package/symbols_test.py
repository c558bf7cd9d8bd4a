"""The library ends no process and prints nothing; the shared one shows its API alone.

usage: symbols_test.py CXX NM SHARED STATIC...
"""
import collections
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

CXX, NM, SHARED, STATIC = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]

ENDS = r"_?exit|_Exit|quick_exit|abort|__assert_fail"
PRINTS = r"v?printf|puts|putchar|perror|stdout|stderr|std::(cout|cerr|clog)|fmt::\w+::v?print\(.*"
FORBIDDEN = re.compile(rf"(?:{ENDS}|{PRINTS})(?:@.*)?")


def symbols(library, *options):
    listed = subprocess.run([NM, "--demangle", "--format=posix", *options, library], check=True, text=True,
                            stdout=subprocess.PIPE).stdout
    # "name type value size"; names have blanks.
    return [match.group(1) for match in re.finditer(r"^(.+?) [A-Za-z](?: [ 0-9a-f]*)?$", listed, re.MULTILINE)]


def defined_twice(libraries):
    """The mangled names that more than one object file defines, inline and template functions aside."""
    times = collections.Counter()
    for library in libraries:
        listed = subprocess.run([NM, "--format=posix", "--defined-only", "--extern-only", library], check=True,
                                text=True, stdout=subprocess.PIPE).stdout
        times.update(re.findall(r"^(\S+) [A-UX-Z] ", listed, re.MULTILINE))
    return [name for name, count in times.items() if count > 1]


class Symbols(unittest.TestCase):
    def test_the_library_neither_ends_the_process_nor_prints(self):
        for library in STATIC:
            needed = symbols(library, "--undefined-only")
            self.assertTrue(needed, library)
            self.assertEqual([name for name in needed if FORBIDDEN.fullmatch(name)], [], library)

    def test_the_pattern_finds_what_it_should(self):
        for name in "exit", "abort", "printf@GLIBC_2.2.5", "std::cout", "stderr", "fmt::v9::vprint(_IO_FILE*, x)":
            self.assertTrue(FORBIDDEN.fullmatch(name), name)
        for name in "exit_code", "snprintf", "tandem::abort()", "std::ostream::put(char)":
            self.assertFalse(FORBIDDEN.fullmatch(name), name)

    def test_every_name_has_one_definition(self):
        self.assertEqual(defined_twice(STATIC), [])

    def test_a_planted_second_definition_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            objects = []
            for name in "first", "second":
                source = pathlib.Path(folder) / f"{name}.cpp"
                source.write_text(f"inline int shared() {{ return 1; }}\nint twice() {{ return shared(); }}\n"
                                  f"int {name}() {{ return 2; }}\n", encoding="utf-8")
                objects.append(source.with_suffix(".o"))
                subprocess.run([CXX, "-c", source, "-o", objects[-1]], check=True)
            self.assertEqual(defined_twice(objects), ["_Z5twicev"])

    def test_the_shared_library_shows_its_api_alone(self):
        shown = symbols(SHARED, "--dynamic", "--defined-only")
        self.assertTrue(any(name.startswith("tandem::Engine::open(") for name in shown), shown)
        self.assertTrue(any(name.startswith("tandem::name(") for name in shown), shown)
        inner = re.compile(r"tandem::(?:(?:artifact|engine|exporter|gpu|model|ops|spec|text)::|Json|File|[Ss]ha256)")
        self.assertEqual([name for name in shown if inner.match(name)], [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
