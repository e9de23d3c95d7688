"""Python's files as modules: each imports what it uses, and no two define the same name."""

import ast
import importlib
import pathlib
import sys
import unittest

import embedder  # noqa: F401 -- sets the path

folder = pathlib.Path(__file__).parents[2] / "src" / "python" / "guest"
files = sorted(file for file in folder.glob("*.py") if file.stem != "__init__")


def defined(tree):
    """Return the names that a module defines."""
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                for name in ast.walk(target):
                    if isinstance(name, ast.Name):
                        yield name.id


class Modules(unittest.TestCase):
    def test_every_file_can_be_imported_first(self):
        known = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "guest"}
        try:
            for file in files:
                for name in [name for name in sys.modules if name.split(".")[0] == "guest"]:
                    del sys.modules[name]
                importlib.import_module(f"guest.{file.stem}")
        finally:
            sys.modules.update(known)

    def test_no_two_files_define_the_same_name(self):
        where = {}
        for file in files:
            for name in set(defined(ast.parse(file.read_text()))):
                where.setdefault(name, []).append(file.stem)
        self.assertGreater(len(where), 100)
        self.assertEqual({name: found for name, found in where.items() if len(found) > 1}, {})


if __name__ == "__main__":
    unittest.main()
