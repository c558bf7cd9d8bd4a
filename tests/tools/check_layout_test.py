"""Planted violations are found by tools/check_layout.py, and a right tree has none."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import check_layout

HEADER = "// Says what it owns.\n#pragma once\n"
TREE = {
    "include/tandem/error.h": HEADER + "#include <string>\n",
    "src/base/CMakeLists.txt": "tandem_module(base SOURCES bytes.cpp)",
    "src/base/bytes.h": HEADER + '#include "tandem/error.h"\n',
    "src/base/bytes.cpp": '#include "base/bytes.h"\n',
    "src/gpu/CMakeLists.txt": "tandem_module(gpu SOURCES native.cpp IMPORTS base)\n"
                              "set_source_files_properties(native.cpp PROPERTIES COMPILE_OPTIONS -g)",
    "src/gpu/native.cpp": "// Dawn.\n#include <webgpu.h>\n#include \"base/bytes.h\"\n",
    "src/ops/CMakeLists.txt": "tandem_module(ops\n  SOURCES\n    copy/copy.cpp\n    copy/copy_reference.cpp\n  IMPORTS gpu spec)",
    "src/ops/words.wgsl": "// Words.\n",
    "src/ops/copy/copy.wgsl": "// Copies.\n//#include words.wgsl\n",
    "src/ops/copy/copy.h": HEADER + '#include "base/bytes.h"\n',
    "src/ops/copy/copy.cpp": '#include "ops/copy/copy.h"\nauto kernel = "copy";\n',
    "src/ops/copy/copy_reference.cpp": "// Copies on the CPU.\n",
    "docs/operators.md": "| `copy` | copies |\n",
    "tests/ops/CMakeLists.txt": "tandem_test(ops SOURCES copy_test.cpp ../support/data.cpp)",
    "tests/ops/copy_test.cpp": "// Tests copies.\n",
    "tests/support/data.cpp": "// Data of tests.\n",
}

# What is planted (None takes a file away), the file that is blamed, and a part of the message.
VIOLATIONS = {
    "an include that points upward": (
        {"src/base/bytes.h": HEADER + '#include "gpu/device.h"\n'},
        "src/base/bytes.h", "base may not import gpu"),
    "an include of a neighbour": (
        {"src/gpu/native.cpp": "// Dawn.\n#include <ops/copy/copy.h>\n"},
        "src/gpu/native.cpp", "gpu may not import ops"),
    "a spaced include directive": (
        {"src/base/bytes.h": HEADER + '  #  include "spec/config.h"\n'},
        "src/base/bytes.h", "base may not import spec"),
    "a public header that includes a private one": (
        {"include/tandem/error.h": HEADER + '#include "base/bytes.h"\n'},
        "include/tandem/error.h", "a public header may not import base"),
    "an include by relative path": (
        {"src/ops/copy/copy.cpp": '#include "ops/copy/copy.h"\n#include "../../gpu/native.h"\nauto kernel = "copy";\n'},
        "src/ops/copy/copy.cpp", "say the path from src/"),
    "an include of a file beside it by its bare name": (
        {"src/ops/copy/copy.cpp": '#include "ops/copy/copy.h"\n#include "copy.h"\nauto kernel = "copy";\n'},
        "src/ops/copy/copy.cpp", "say the path from src/"),
    "the WebGPU library outside gpu": (
        {"src/ops/copy/copy.h": HEADER + "#include <webgpu.h>\n"},
        "src/ops/copy/copy.h", "only src/gpu/native* may"),
    "the WebGPU library in the interface of gpu": (
        {"src/gpu/device.h": HEADER + '#include "webgpu.h"\n'},
        "src/gpu/device.h", "only src/gpu/native* may"),
    "a folder that is not in the graph": (
        {"src/util/misc.h": HEADER}, "src/util/misc.h", "not in the list of folders"),
    "a header without #pragma once": (
        {"src/base/bytes.h": "// Says what it owns.\n"}, "src/base/bytes.h", "#pragma once"),
    "a header without a comment": (
        {"src/base/bytes.h": "#pragma once\n"}, "src/base/bytes.h", "begin with a comment"),
    "a kernel without a comment": (
        {"src/ops/copy/copy.wgsl": "fn main() {}\n//#include words.wgsl\n"},
        "src/ops/copy/copy.wgsl",
        "begin with a comment"),
    "a test without a comment": (
        {"tests/ops/copy_test.cpp": "int main() {}\n"}, "tests/ops/copy_test.cpp",
        "begin with a comment"),
    "a source that no CMakeLists lists": (
        {"src/base/CMakeLists.txt": "tandem_module(base SOURCES otherbytes.cpp bytes.cpp.in)"},
        "src/base/bytes.cpp", "is not listed"),
    "a source that another folder lists": (
        {"src/base/CMakeLists.txt": "", "src/gpu/CMakeLists.txt": "SOURCES native.cpp bytes.cpp"},
        "src/base/bytes.cpp", "is not listed"),
    "a test that is not listed": (
        {"tests/ops/CMakeLists.txt": "SOURCES ../support/data.cpp"}, "tests/ops/copy_test.cpp",
        "is not listed"),
    "a support source that no test lists": (
        {"tests/ops/CMakeLists.txt": "SOURCES copy_test.cpp"}, "tests/support/data.cpp",
        "is not listed"),
    "a kernel that nothing records": (
        {"src/ops/copy/copy.cpp": '#include "ops/copy/copy.h"\nauto kernel = "copies";\n'},
        "src/ops/copy/copy.wgsl", 'names "copy"'),
    "a part that no kernel includes": (
        {"src/ops/copy/copy.wgsl": "// Copies.\n//#include words.wgsl.old\n"}, "src/ops/words.wgsl",
        "no kernel includes it"),
    "a source in two targets": (
        {"tests/ops/CMakeLists.txt":
         "tandem_test(ops SOURCES copy_test.cpp ../support/data.cpp ../../src/base/bytes.cpp)"},
        "src/base/bytes.cpp", "is built by 2 targets"),
    "a source twice in its list": (
        {"src/base/CMakeLists.txt": "tandem_module(base SOURCES bytes.cpp bytes.cpp)"},
        "src/base/bytes.cpp", "is built by 2 targets"),
    "a source that includes its header late": (
        {"src/base/bytes.cpp": '#include <string>\n#include "base/bytes.h"\n'},
        "src/base/bytes.cpp", "does not include base/bytes.h first"),
    "a component of a vector in memory": (
        {"src/ops/copy/copy.wgsl": "// Copies.\n//#include words.wgsl\nfn main() {\n  y[i / 4u][i % 4u] = x;\n}\n"},
        "src/ops/copy/copy.wgsl", "y[i / 4u][i % 4u] ="),
    "a named component of a vector in memory": (
        {"src/ops/words.wgsl": "// Words.\nfn note() {\n  sums[local].x += 1.0;\n}\n"}, "src/ops/words.wgsl",
        "sums[local].x +="),
    "a kernel without a reference": (
        {"src/ops/copy/copy_reference.cpp": None}, "src/ops/copy/copy.wgsl",
        "src/ops/copy/copy_reference.cpp is missing"),
    "a kernel that docs do not mention": (
        {"docs/operators.md": "| copy | copies |\n"}, "src/ops/copy/copy.wgsl",
        "no page of docs/ has `copy`"),
    "a kernel without a test": (
        {"tests/ops/copy_test.cpp": None}, "src/ops/copy/copy.wgsl",
        "tests/ops/copy_test.cpp is missing"),
}


class CheckLayout(unittest.TestCase):
    def violations(self, planted):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder) / "a tree"
            for name, text in {**TREE, **planted}.items():
                if text is not None:
                    (root / name).parent.mkdir(parents=True, exist_ok=True)
                    (root / name).write_text(text, encoding="utf-8")
            return list(check_layout.violations(root))

    def test_right_tree(self):
        self.assertEqual(self.violations({}), [])

    def test_each_violation_is_found_alone(self):
        for what, (planted, blamed, message) in VIOLATIONS.items():
            with self.subTest(what):
                found = self.violations(planted)
                self.assertEqual([name for name, _ in found], [blamed])
                self.assertIn(message, found[0][1])

    def test_graph_points_downward(self):
        order = list(check_layout.IMPORTS)
        for folder, imports in check_layout.IMPORTS.items():
            for below in imports:
                self.assertLess(order.index(below), order.index(folder))


if __name__ == "__main__":
    unittest.main()
