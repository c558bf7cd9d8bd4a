"""tools/run gives a command the driver that its rules say."""

import importlib.machinery
import importlib.util
import os
import pathlib
import unittest
from unittest import mock

SCRIPT = str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "run")
loader = importlib.machinery.SourceFileLoader("run", SCRIPT)
run = importlib.util.module_from_spec(importlib.util.spec_from_loader("run", loader))
loader.exec_module(run)

SOFTWARE = "/drivers/software.json"


class Run(unittest.TestCase):
    def driver(self, software_only, gpu=None, software=SOFTWARE, **environment):
        """VK_DRIVER_FILES as the command sees it."""
        with mock.patch.object(run, "hardware_device", return_value=gpu), \
                mock.patch.object(run, "software_driver", return_value=software), \
                mock.patch.dict(os.environ, environment, clear=True), \
                mock.patch.object(os, "execvpe") as execute:
            run.run(["command", "argument"], software_only)
        name, command, seen = execute.call_args.args
        self.assertEqual((name, command), ("command", ["command", "argument"]))
        return seen.get("VK_DRIVER_FILES")

    def test_drivers(self):
        for what, software_only, settings, expected in (
                ("no GPU", False, {}, SOFTWARE),
                ("a GPU", False, {"gpu": "H200"}, None),
                ("a GPU, but software is wanted", True, {"gpu": "H200"}, SOFTWARE),
                ("a GPU that tests are sent to", True, {"TANDEM_ADAPTER": "H200"}, None),
                ("the user's own driver", False, {"VK_DRIVER_FILES": "/own.json"}, "/own.json"),
                ("the user's own driver in tests", True, {"VK_DRIVER_FILES": "/own.json"},
                 "/own.json"),
                ("the user's own driver by the older name", True,
                 {"VK_ICD_FILENAMES": "/own.json"}, None),
                ("the user's own driver and no other", True,
                 {"VK_DRIVER_FILES": "/own.json", "software": None}, "/own.json")):
            with self.subTest(what):
                self.assertEqual(self.driver(software_only, **settings), expected)

    def test_no_driver_at_all(self):
        for software_only in (False, True):
            with self.assertRaisesRegex(SystemExit, "make setup"):
                self.driver(software_only, software=None)


if __name__ == "__main__":
    unittest.main()
