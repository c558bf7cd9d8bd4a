"""tools/performance.py shows every figure with its origin, notices a stale page, and refuses damaged results."""

import contextlib
import copy
import importlib.util
import io
import json
import pathlib
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools" / "performance.py"
spec = importlib.util.spec_from_file_location("performance", SCRIPT)
performance = importlib.util.module_from_spec(spec)
spec.loader.exec_module(performance)

ORIGIN = {
    "schema": 1, "command": "tandem bench tiny --repeat 3", "commit": "0123456789ab+",
    "date": "2026-01-02T03:04:05Z",
    "artifact": {"name": "tiny", "digest": "a" * 64, "synthetic": True, "weight_bytes": 1500000},
    "device": {"adapter": "GPU 9", "software": True, "driver": "driver 7", "library": "libwebgpu.so",
               "tiers": ["base", "f16"], "kernel_closure": "c" * 64},
    "options": {"kv": "f16", "context": 640, "input_bound": 512, "rounds_in_flight": 4, "pass_per_dispatch": False},
}
BENCH = ORIGIN | {
    "kind": "bench", "load_ms": 12.4, "compile_ms": 34, "first_token": {"prompt_tokens": 8, "ms": 56},
    "prefill": [{"tokens": 128, "tokens_per_second": [300.5, 100, 200], "median": 200, "min": 100, "max": 300.5}],
    "decode": [], "skipped": {"prefill": [], "decode": [2048, 8192]},
}
PROFILE = ORIGIN | {
    "kind": "profile",
    "methods": [{"method": "decode", "unit": "token", "runs": 2, "calls": 4 + 2 * 14, "time_ns": 6000 + 14 * 100,
                 "gap_ns": 500,
                 "kernels": [{"kernel": "linear_row q4_0", "calls": 4, "time_ns": 6000, "bytes": 12000}] +
                            [{"kernel": f"norm {i}", "calls": 2, "time_ns": 100, "bytes": None} for i in range(14)]}],
}
MTP = BENCH | {
    "mtp": [{"prompts": "questions", "drafted": [10, 8], "accepted": [9, 4], "tokens": 23, "rounds": 10,
             "plain": {"tokens_per_second": [100, 120, 110], "median": 110, "min": 100, "max": 120},
             "mtp": {"tokens_per_second": [150, 165, 170], "median": 165, "min": 150, "max": 170},
             "ratio": 1.5, "acceptance": 13 / 18, "tokens_per_round": 2.3}],
}
WEB = ORIGIN | {
    "kind": "web",
    "mtp": [MTP["mtp"][0] | {"native": {
        "plain": {"tokens_per_second": [125], "median": 125, "min": 125, "max": 125},
        "mtp": {"tokens_per_second": [200, 180, 190], "median": 190, "min": 180, "max": 200}}}],
}
REPLAY = ORIGIN | {
    "kind": "replay", "submissions": 11, "dispatches_per_submission": 52, "calls_per_submission": 1,
    "encode_us_per_dispatch": {"samples": [index / 10 for index in range(1, 12)], "p10": 0.2, "median": 0.6, "p90": 1.0},
    "hand_over_us_per_submission": {"samples": list(range(1, 12)), "p10": 2, "median": 6, "p90": 10},
}
FORCED = BENCH | {
    "forced": [{"depth": 512, "tokens_per_round": 2, "ratio": 1.5, "round_ms": 13.0, "plain_round_ms": 10.0,
                "plain": {"tokens_per_second": [100], "median": 100, "min": 100, "max": 100},
                "mtp": {"tokens_per_second": [150], "median": 150, "min": 150, "max": 150}}],
    "memory": {"gpu_bytes": 4 << 20, "session_bytes": 1 << 20}, "dispatches": {"decode": 300, "k2_round": 500},
}


def decode_row(depth, rate, moved):
    return {"depth": depth, "tokens_per_second": [rate], "median": rate, "min": rate, "max": rate, "busy": 0.5, "bytes": moved}


E2B = FORCED | {
    "artifact": ORIGIN["artifact"] | {"name": "e2b"},
    "device": ORIGIN["device"] | {"software": False, "library": "libwebgpu_dawn.so"},
    "decode": [decode_row(1, 500, 1000), decode_row(512, 455, 1100)],
}
FILES = {"2026-01-02-gpu9-tiny-bench.json": BENCH, "2026-01-02-gpu9-tiny-profile.json": PROFILE}


class Performance(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "docs").mkdir()
        (self.root / "bench" / "results").mkdir(parents=True)

    def write(self, name, result):
        text = result if isinstance(result, str) else json.dumps(result)
        path = self.root / "bench" / "results" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def run_script(self, *arguments):
        performance.main([*arguments, "--root", str(self.root)])

    def page(self):
        return (self.root / "docs" / "performance.md").read_text(encoding="utf-8")

    def test_tables_name_their_origin(self):
        for name, result in FILES.items():
            self.write(name, result)
        self.run_script()
        page = self.page()
        for part in ("### Bench: tiny on GPU 9 (software), 2026-01-02", "synthetic: random weights", "driver 7",
                     "libwebgpu.so", "0123456789ab+", "`tandem bench tiny --repeat 3`",
                     "| 128 | 200.0 | 100.0 | 300.5 |", "first token 56 ms after 8 tokens",
                     "decode at 2048, 8192", "| `linear_row q4_0` | 2 | 3.0 | 2.00 | 81.1% |",
                     "| 3 others | 3 | 0.1 | - | 4.1% |", "| total | 16 | 3.7 | - | 100.0% |",
                     "Between dispatches: 0.2 us."):
            self.assertIn(part, page)
        self.assertNotIn("| decode depth", page)

    def test_a_ratio_stands_beside_its_acceptance(self):
        name = next(iter(FILES))
        self.write(name, BENCH)
        self.run_script()
        self.assertNotIn("| MTP beside plain", self.page())
        self.write(name, MTP)
        self.run_script()
        self.assertIn("| questions | 110.0 (100.0 .. 120.0) | 165.0 (150.0 .. 170.0) | 1.50 | 72 % (90 / 50) | 2.30 |",
                      self.page())
        for key, value, reason in (("ratio", 1.6, "ratio"), ("accepted", [9, 5], "acceptance"),
                                   ("rounds", 9, "tokens_per_round"), ("plain", MTP["mtp"][0]["plain"] | {"max": 9}, "plain")):
            with self.subTest(reason):
                self.write(name, MTP | {"mtp": [MTP["mtp"][0] | {key: value}]})
                with self.assertRaisesRegex(SystemExit, f"{name}.*{reason}"):
                    self.run_script()
        without = {key: value for key, value in MTP["mtp"][0].items() if key != "accepted"}
        self.write(name, MTP | {"mtp": [without]})
        with self.assertRaisesRegex(SystemExit, "no key 'accepted'"):
            self.run_script()

    def test_the_web_engine_stands_beside_the_native_one(self):
        name = "2026-01-02-gpu9-tiny-web.json"
        self.write(name, WEB)
        self.run_script()
        self.assertIn("| questions | 110.0 | 125.0 | 0.88 | 165.0 | 190.0 | 0.87 | 72 % (90 / 50) |", self.page())
        native = WEB["mtp"][0]["native"]
        for key, value, reason in (("native", native | {"mtp": native["mtp"] | {"median": 180}}, "native mtp"),
                                   ("mtp", native["mtp"], "ratio")):
            with self.subTest(reason):
                self.write(name, WEB | {"mtp": [WEB["mtp"][0] | {key: value}]})
                with self.assertRaisesRegex(SystemExit, f"{name}.*{reason}"):
                    self.run_script()

    def test_a_replay_shows_its_percentiles(self):
        name = "2026-01-02-gpu9-tiny-replay.json"
        self.write(name, REPLAY)
        self.run_script()
        self.assertIn("| 11 | 52 | 1 | 0.20 | 0.60 | 1.00 | 2.00 | 6.00 | 10.00 |", self.page())
        for series in ("encode_us_per_dispatch", "hand_over_us_per_submission"):
            for key, value in (("p10", 0.1), ("samples", [0.2, 0.1])):
                with self.subTest(series, key=key):
                    self.write(name, REPLAY | {series: REPLAY[series] | {key: value}})
                    with self.assertRaisesRegex(SystemExit, f"{name}.*p10"):
                        self.run_script()

    def test_a_forced_acceptance_is_named_so(self):
        name = next(iter(FILES))
        self.write(name, FORCED)
        self.run_script()
        for part in ("| MTP, tokens/round forced to |", "| 2 | 512 | 100.0 (100.0 .. 100.0) | 150.0 (150.0 .. 150.0) | 1.50 |",
                     "Dispatches: 300 of a decode, 500 of a k2_round."):
            self.assertIn(part, self.page())
        self.write(name, FORCED | {"forced": [FORCED["forced"][0] | {"ratio": 1.6}]})
        with self.assertRaisesRegex(SystemExit, f"{name}.*2 tokens a round: ratio"):
            self.run_script()

    def test_goals_and_plot_are_of_the_newest_run_on_a_gpu(self):
        self.write("2026-01-02-gpu9-e2b-bench.json", E2B)
        self.run_script()
        self.assertIn("| decode at 512, tokens/s | 450 | 540 | 455 | must |", self.page())
        self.assertIn("| dispatches of a decode | ≤ 430 | ≤ 330 | 300 | goal |", self.page())
        self.assertIn("| MTP at 2 forced tokens/round, tokens/s | - | 610 | 150 | no |", self.page())
        self.assertIn("| prefill at 512, tokens/s | 10000 | 20000 | - | - |", self.page())
        plot = self.root / "docs" / "images" / "scaling.svg"
        text = plot.read_text(encoding="utf-8")
        self.assertIn("e2b, GPU 9", text)
        self.assertEqual(text.count("stroke-dasharray"), 1)
        plot.write_text(text + " ", encoding="utf-8")
        with self.assertRaisesRegex(SystemExit, "scaling.svg"):
            self.run_script("--check")
        later = E2B | {"date": "2026-01-03T00:00:00Z", "decode": [decode_row(512, 600, 1)]}
        self.write("2026-01-03-gpu9-e2b-bench.json", later)
        self.write("2026-01-04-gpu9-e2b-bench.json", later | {"date": "2026-01-04T00:00:00Z", "device": ORIGIN["device"]})
        self.run_script()
        self.assertIn("| decode at 512, tokens/s | 450 | 540 | 600 | goal |", self.page())
        self.assertIn("as of 2026-01-03", self.page())

    def test_int8_activations_have_goals_of_their_own(self):
        int8 = E2B | {"options": ORIGIN["options"] | {"activations": "int8"}}
        self.write("2026-01-02-gpu9-e2b-bench.json", E2B)
        self.write("2026-01-02-gpu9-e2b-int8-bench.json", int8 | {"decode": [decode_row(512, 700, 1)]})
        self.run_script()
        for part in ("## Goals with f32 activations", "| decode at 512, tokens/s | 450 | 540 | 455 | must |",
                     "## Goals with int8 activations", "| decode at 512, tokens/s | 540 | 680 | 700 | goal |",
                     "### Bench: e2b with int8 activations on GPU 9", "KV f16, activations int8, context 640"):
            self.assertIn(part, self.page())

    def test_libraries_stand_side_by_side(self):
        self.write("2026-01-02-gpu9-e2b-bench.json", E2B)
        self.run_script()
        self.assertNotIn("## Libraries", self.page())
        other = E2B | {"device": E2B["device"] | {"library": "libother.so"}, "decode": [decode_row(512, 999, 1)]}
        self.write("2026-01-02-gpu9other-e2b-bench.json", other)
        self.run_script()
        self.assertIn("| figure | libwebgpu_dawn.so | libother.so |", self.page())
        self.assertIn("| decode at 512, tokens/s | 455 | 999 |", self.page())
        self.assertIn("| decode at 512, tokens/s | 450 | 540 | 455 | must |", self.page())

    def test_libraries_are_compared_with_the_same_kernels(self):
        def record(name, library, kernels, rate):
            device = ORIGIN["device"] | {"software": False, "library": library, "kernel_closure": kernels}
            self.write(f"2026-01-02-{name}-e2b-bench.json", E2B | {"device": device, "decode": [decode_row(512, rate, 1)]})
        record("other", "libother.so", 64 * "a", 410)
        record("faster", "libwebgpu_dawn.so", 64 * "b", 600)
        self.run_script()
        self.assertNotIn("## Libraries", self.page())
        record("same", "libwebgpu_dawn.so", 64 * "a", 400)
        self.run_script()
        self.assertIn("| decode at 512, tokens/s | 400 | 410 |", self.page())

    def test_a_result_stands_beside_the_last_recorded_one(self):
        result = self.root / "now.json"
        result.write_text(json.dumps(E2B | {"decode": [decode_row(512, 910, 1)]}), encoding="utf-8")
        with self.assertRaisesRegex(SystemExit, "no bench of e2b"):
            self.run_script("--against", str(result))
        self.write("2026-01-02-gpu9-e2b-bench.json", E2B)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.run_script("--against", str(result))
        self.assertIn("| decode at 512, tokens/s | 455 | 910 | 2.00 |", out.getvalue())

    def test_a_result_of_a_software_adapter_says_so_beside_others(self):
        result = self.root / "mine.json"
        result.write_text(json.dumps(E2B | {"device": E2B["device"] | {"software": True}}), encoding="utf-8")
        self.write("2026-01-02-gpu9-e2b-bench.json", E2B)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.run_script("--against", str(result))
        self.assertIn("say nothing of a GPU", out.getvalue())

    def test_chunks_are_in_the_order_of_their_rows(self):
        prefill = [{"tokens": tokens, "median": 1000 + tokens} for tokens in (512, 2048, 8192)]
        for rows in (1024, 512):
            options = E2B["options"] | {"input_bound": rows}
            self.write(f"chunks/2026-01-02-gpu9-e2b-f32-{rows}.json", E2B | {"prefill": prefill, "options": options})
        self.run_script()
        page = self.page()
        self.assertIn("| f32 | 512 | 1512 | 3048 | 9192 | 1.57 |", page)
        self.assertLess(page.index("| f32 | 512 | 1512 |"), page.index("| f32 | 1024 | 1512 |"))

    def test_check_notices_a_stale_page(self):
        with self.assertRaisesRegex(SystemExit, "run tools/performance.py"):
            self.run_script("--check")
        self.run_script()
        self.run_script("--check")
        self.assertIn("None is recorded yet", self.page())
        self.write(*next(iter(FILES.items())))
        with self.assertRaisesRegex(SystemExit, "run tools/performance.py"):
            self.run_script("--check")
        self.run_script()
        self.run_script("--check")

    def test_damaged_results_are_refused(self):
        bench, profile = FILES
        for reason, name, keys, value in (
                ("expected 1", bench, ("schema",), 2),
                ("kind other", bench, ("kind",), "other"),
                ("not those of the samples", bench, ("prefill", 0, "median"), 201),
                ("not those of the samples", bench, ("prefill", 0, "tokens_per_second"), [300.5, 100]),
                ("2026-01-03-ADAPTER", bench, ("date",), "2026-01-03T00:00:00Z"),
                ("not the sum", profile, ("methods", 0, "time_ns"), 7401)):
            with self.subTest(reason):
                damaged = copy.deepcopy(FILES[name])
                at = damaged
                for key in keys[:-1]:
                    at = at[key]
                at[keys[-1]] = value
                self.write(name, damaged)
                with self.assertRaisesRegex(SystemExit, f"{name}.*{reason}"):
                    self.run_script()
                (self.root / "bench" / "results" / name).unlink()
        self.write(bench, "{")
        with self.assertRaisesRegex(SystemExit, "is not JSON"):
            self.run_script()
        self.write(bench, {key: value for key, value in BENCH.items() if key != "commit"})
        with self.assertRaisesRegex(SystemExit, "no key 'commit'"):
            self.run_script()


if __name__ == "__main__":
    unittest.main()
