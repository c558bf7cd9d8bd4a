"""tools/serve.py answers with the ranges and headers that the page relies on."""

import functools
import http.client
import http.server
import importlib.util
import pathlib
import tempfile
import threading
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools" / "serve.py"
spec = importlib.util.spec_from_file_location("serve", SCRIPT)
serve = importlib.util.module_from_spec(spec)
spec.loader.exec_module(serve)


class Serve(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        pathlib.Path(folder.name, "a.wasm").write_bytes(b"0123456789")
        handler = functools.partial(serve.Handler, directory=folder.name)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        threading.Thread(target=self.server.serve_forever).start()

    def get(self, path, **headers):
        connection = http.client.HTTPConnection(*self.server.server_address)
        self.addCleanup(connection.close)
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer, answer.read()

    def test_ranges(self):
        for asked, status, content, range_ in (
                (None, 200, b"0123456789", None),
                ("bytes=3-", 206, b"3456789", "bytes 3-9/10"),
                ("bytes=3-4", 206, b"34", "bytes 3-4/10"),
                ("bytes=9-99", 206, b"9", "bytes 9-9/10"),
                ("bytes=10-", 416, b"", "bytes */10"),
                ("bytes=-3", 200, b"0123456789", None)):
            with self.subTest(asked):
                answer, found = self.get("/a.wasm", **({"Range": asked} if asked else {}))
                self.assertEqual((answer.status, found, answer.getheader("Content-Range")),
                                 (status, content, range_))

    def test_headers(self):
        answer, _ = self.get("/a.wasm")
        self.assertEqual(answer.getheader("Content-Type"), "application/wasm")
        for name, value in serve.HEADERS.items():
            self.assertEqual(answer.getheader(name), value)

    def test_refusals(self):
        for path in ("/b", "/../a.wasm/x", "/%2e%2e/%2e%2e/etc/passwd"):
            with self.subTest(path):
                self.assertEqual(self.get(path)[0].status, 404)
        self.assertEqual(self.get("/b", Range="bytes=0-")[0].status, 404)


if __name__ == "__main__":
    unittest.main()
