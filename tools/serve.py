#!/usr/bin/env python3
"""Serves a folder over HTTP with what a browser needs to load Tandem's page and artifacts.

    tools/serve.py [--port N] [--address A] FOLDER     127.0.0.1:8000; the page works from there or by https

What it sends with every file, and why, is the table in web/README.md: any static server that does so will do.
"""

import argparse
import functools
import http.server
import os
import re

HEADERS = {
    # Artifacts may be loaded from other origins, and see where a range begins.
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "Content-Range",
    "Accept-Ranges": "bytes",
    # The page is isolated, so its clock has a finer step; the files may be embedded by pages that are, too.
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "cross-origin",
    # A new build is seen at once.
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
}
TYPES = {".js": "text/javascript", ".wasm": "application/wasm", ".json": "application/json"}
RANGE = re.compile(r"bytes=(\d+)-(\d*)$")


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    extensions_map = {**http.server.SimpleHTTPRequestHandler.extensions_map, **TYPES}

    def end_headers(self):
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def do_GET(self):
        """A whole file is the base class's matter; a range is not."""
        asked = RANGE.match(self.headers.get("Range", ""))
        path = self.translate_path(self.path)
        if not asked or not os.path.isfile(path):
            super().do_GET()
            return
        size = os.path.getsize(path)
        begin = int(asked[1])
        end = min(int(asked[2] or size - 1), size - 1)
        if begin > end:
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{size}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(206)
        self.send_header("Content-Type", self.guess_type(path))
        self.send_header("Content-Range", f"bytes {begin}-{end}/{size}")
        self.send_header("Content-Length", str(end + 1 - begin))
        self.end_headers()
        with open(path, "rb") as file:
            file.seek(begin)
            self.send(file, end + 1 - begin)

    def send(self, file, rest):
        while rest > 0:
            block = file.read(min(rest, 1 << 20))
            self.wfile.write(block)
            rest -= len(block)

    def handle(self):
        """A client that leaves early, as after an abort, is no error."""
        try:
            super().handle()
        except (BrokenPipeError, ConnectionResetError):
            pass

    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("folder")
    options = parser.parse_args()
    handler = functools.partial(Handler, directory=options.folder)
    with http.server.ThreadingHTTPServer((options.address, options.port), handler) as server:
        print(f"http://localhost:{server.server_port}/ serves {options.folder}; Ctrl-C ends it", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
