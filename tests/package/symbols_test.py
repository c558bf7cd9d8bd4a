"""The library ends no process and prints nothing; the shared one shows its API alone.

usage: symbols_test.py NM SHARED STATIC...
"""
import re
import subprocess
import sys
import unittest

NM, SHARED, STATIC = sys.argv[1], sys.argv[2], sys.argv[3:]

ENDS = r"_?exit|_Exit|quick_exit|abort|__assert_fail"
PRINTS = r"v?printf|puts|putchar|perror|stdout|stderr|std::(cout|cerr|clog)|fmt::\w+::v?print\(.*"
FORBIDDEN = re.compile(rf"(?:{ENDS}|{PRINTS})(?:@.*)?")


def symbols(library, *options):
    listed = subprocess.run([NM, "--demangle", "--format=posix", *options, library], check=True, text=True,
                            stdout=subprocess.PIPE).stdout
    # "name type value size"; names have blanks.
    return [match.group(1) for match in re.finditer(r"^(.+?) [A-Za-z](?: [ 0-9a-f]*)?$", listed, re.MULTILINE)]


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

    def test_the_shared_library_shows_its_api_alone(self):
        shown = symbols(SHARED, "--dynamic", "--defined-only")
        self.assertTrue(any(name.startswith("tandem::Engine::open(") for name in shown), shown)
        self.assertTrue(any(name.startswith("tandem::name(") for name in shown), shown)
        inner = re.compile(r"tandem::(?:(?:artifact|engine|exporter|gpu|model|ops|spec|text)::|Json|File|[Ss]ha256)")
        self.assertEqual([name for name in shown if inner.match(name)], [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
