#!/usr/bin/env python3
"""Bounds the instructions that the host takes for a round: encoding, submission, readback, text.

    host_path_test.py VALGRIND HOST_PATH ARTIFACT

The WebGPU library computes nothing (webgpu_stub.h), so they are Tandem's own, and the same in each run but for what a compiler
makes of it. What two lengths of generation have in common is not counted.
"""

import re
import subprocess
import sys
import tempfile

SHORT, LONG = 16, 80
# By method. About twice what GCC 12 with optimization has.
MOST_INSTRUCTIONS = {"plain": 60_000, "mtp": 90_000}


def instructions(valgrind, program, artifact, tokens, method):
    with tempfile.NamedTemporaryFile() as out:
        run = subprocess.run([valgrind, "--tool=callgrind", f"--callgrind-out-file={out.name}", program, artifact, str(tokens), method],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    collected = re.search(r"Collected : (\d+)", run.stderr)
    if run.returncode != 0 or not collected:
        sys.exit(f"{program} {tokens} {method}: {run.returncode}\n{run.stdout}{run.stderr}")
    return int(collected.group(1))


def main(valgrind, program, artifact):
    failed = False
    for method, most in MOST_INSTRUCTIONS.items():
        counts = [instructions(valgrind, program, artifact, tokens, method) for tokens in (SHORT, LONG)]
        a_round = (counts[1] - counts[0]) / (LONG - SHORT)
        print(f"{method}: {a_round:.0f} instructions a round, at most {most} are expected")
        failed |= a_round > most
    sys.exit(failed)


if __name__ == "__main__":
    main(*sys.argv[1:])
