"""bench/peers: a GGUF file of random weights has an artifact's geometry; llama.cpp's figures stand beside Tandem's; what is absent is named."""

import io
import contextlib
import importlib.util
import os
import pathlib
import struct
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]


def load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "bench" / "peers" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


llamacpp, random_gguf = load("llamacpp"), load("random_gguf")

BENCH = """#!/bin/sh
case "$*" in
  *"-n 0"*) echo '[{"n_prompt": 512, "n_gen": 0, "n_depth": 0, "avg_ts": 1234}]';;
  *) echo '[{"n_prompt": 0, "n_gen": 128, "n_depth": 512, "avg_ts": 111.25}]';;
esac
"""
SERVER = """#!/usr/bin/env python3
import http.server, json, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        self.answer({"status": "ok"})
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer({"timings": {"prompt_per_second": len(asked["prompt"]), "predicted_per_second": 99.5}})
    def log_message(self, *_):
        pass
if "-ot" in sys.argv:
    sys.exit(1)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), Handler).serve_forever()
"""


class Peers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model = self.folder / "model.gguf"

    def install(self, name, text):
        path = self.folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def run_llamacpp(self, *arguments):
        out = io.StringIO()
        path = f"{self.folder / 'bin'}:/usr/bin:/bin"
        with mock.patch.dict(os.environ, {"PATH": path}), contextlib.redirect_stdout(out):
            llamacpp.main([str(self.model), *arguments])
        return out.getvalue()

    def test_figures_stand_beside_those_recorded(self):
        self.model.write_bytes(b"GGUF")
        self.install("llama-bench", BENCH)
        self.install("llama-server", SERVER)
        table = self.run_llamacpp("--repeat", "1")
        self.assertIn("| figure | llama-bench | llama-server | Tandem, f32, ", table)
        self.assertIn(" | Tandem, int8, ", table)
        self.assertIn("| decode at 512, tokens/s | 111 | 99.50 | ", table)
        self.assertIn("| prefill at 512, tokens/s | 1234 | 512 | ", table)
        self.assertIn("| decode at 8192, tokens/s | - | 99.50 | ", table)

    def test_what_is_absent_is_named(self):
        with mock.patch.object(llamacpp.shutil, "which", return_value=None):
            with self.assertRaisesRegex(SystemExit, "llama-bench is not on the PATH"):
                self.run_llamacpp()
        self.install("llama-bench", "#!/bin/sh\nexit 3\n")
        self.install("llama-server", "#!/bin/sh\nexit 3\n")
        with self.assertRaisesRegex(SystemExit, "model.gguf: no such file"):
            self.run_llamacpp()
        self.model.write_bytes(b"GGUF")
        with self.assertRaisesRegex(SystemExit, "no bench of e9b"):
            self.run_llamacpp("--against", "e9b")
        with self.assertRaisesRegex(SystemExit, "llama-bench failed with 3"):
            self.run_llamacpp()
        self.install("llama-bench", BENCH)
        with self.assertRaisesRegex(SystemExit, "llama-server does not start"):
            self.run_llamacpp()

    def test_a_random_file_has_the_geometry_of_an_artifact(self):
        random_gguf.main([str(ROOT / "models" / "atlas"), str(self.model)])
        data = self.model.read_bytes()
        magic, version, tensors, keys = struct.unpack_from("<4sIQQ", data)
        self.assertEqual((magic, version), (b"GGUF", 3))
        self.assertGreater(keys, 20)
        for part in (b"gemma4.attention.shared_kv_layers", b"blk.9.ffn_down.weight", b"per_layer_token_embd.weight"):
            self.assertIn(part, data)
        self.assertNotIn(b"blk.9.attn_k.weight", data)  # shares its KV
        self.assertEqual(tensors, len(list(random_gguf.tensors(
            random_gguf.json.loads((ROOT / "models/atlas/manifest.json").read_text())["config"]))))
        with self.assertRaises(FileExistsError):
            random_gguf.main([str(ROOT / "models" / "atlas"), str(self.model)])


if __name__ == "__main__":
    unittest.main()
