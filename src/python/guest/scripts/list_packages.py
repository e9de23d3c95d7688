"""How an interpreter tells its version and those of the packages that are given as arguments: a line of JSON."""

import importlib.metadata
import json
import platform
import sys


def version_of(name):
    """Return the version of a package; None if it is not installed."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


packages = {name: version_of(name) for name in sys.argv[1:]}
print(json.dumps({"path": sys.executable, "version": platform.python_version(), "packages": packages}))
