"""How an interpreter says where its library may be: a line of JSON."""

import json
import os
import sys
import sysconfig

version = f"{sys.version_info.major}.{sys.version_info.minor}"
soname = f"libpython{version}{sys.abiflags}.so.1.0"
folders = [sysconfig.get_config_var("LIBDIR") or "", os.path.join(sys.base_prefix, "lib")]
found = [os.path.join(folder, soname) for folder in folders if os.path.exists(os.path.join(folder, soname))]
print(json.dumps({"executable": sys.executable, "version": version, "libraries": [*found, soname]}))
