"""The scripts that stand alone."""

import json
import os
import platform
import signal
import subprocess
import sys
import unittest

import embedder

scripts = os.path.join(embedder.sources, "guest", "scripts")


def run(name, *arguments, more=""):
    with open(os.path.join(scripts, name)) as file:
        code = file.read()
    return subprocess.run(
        [sys.executable, "-c", code + more, *arguments], stdout=subprocess.PIPE, check=True, encoding="utf-8"
    ).stdout


class Scripts(unittest.TestCase):
    def test_lines_are_written_out_and_ctrl_c_is_the_systems(self):
        printed = run(
            "prepare_process.py",
            more="import signal, sys\nprint(sys.stdout.line_buffering, int(signal.getsignal(signal.SIGINT)))\n",
        )
        self.assertEqual(printed, f"True {int(signal.SIG_DFL)}\n")

    def test_an_interpreter_describes_itself(self):
        found = json.loads(run("describe_installation.py"))
        self.assertEqual(found["version"], ".".join(map(str, sys.version_info[:2])))
        self.assertEqual(found["executable"], sys.executable)
        *files, soname = found["libraries"]
        self.assertEqual(soname, f"libpython{found['version']}{sys.abiflags}.so.1.0")
        self.assertEqual([os.path.exists(file) for file in files], [True] * len(files))

    def test_an_interpreter_lists_packages_with_their_versions(self):
        found = json.loads(run("list_packages.py", "no-such-package"))
        self.assertEqual(found["packages"], {"no-such-package": None})
        self.assertEqual(found["version"], platform.python_version())


if __name__ == "__main__":
    unittest.main()
