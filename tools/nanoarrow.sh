#!/usr/bin/env bash
# Builds nanoarrow's library for Arrow's integration tests, which no package carries, beside the nanoarrow of a Python:
# a few seconds. Needs g++ and the headers of nlohmann's json (nlohmann-json3-dev).
# Usage: tools/nanoarrow.sh PYTHON
set -euo pipefail
python=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
read -r version target < <("$python" -c 'import nanoarrow, os; print(nanoarrow.__version__, os.path.dirname(nanoarrow.__file__))')

# pip asks the package's build tool for its metadata, which would compile all of it. Only the source is wanted, so a
# module of that name says what is known already.
mkdir "$scratch/backend"
cat >"$scratch/backend/mesonpy.py" <<BACKEND
import os
def prepare_metadata_for_build_wheel(directory, settings=None):
    name = "nanoarrow-$version.dist-info"
    os.makedirs(os.path.join(directory, name))
    with open(os.path.join(directory, name, "METADATA"), "w") as file:
        file.write("Metadata-Version: 2.1\nName: nanoarrow\nVersion: $version\n")
    return name
BACKEND
PYTHONPATH=$scratch/backend "$python" -m pip download --quiet --disable-pip-version-check --no-deps \
  --no-build-isolation --no-binary nanoarrow --dest "$scratch" "nanoarrow==$version"
tar -xzf "$scratch/nanoarrow-$version.tar.gz" -C "$scratch"
source=$scratch/nanoarrow-$version/subprojects/arrow-nanoarrow/src

IFS=. read -r major minor patch <<<"$version"
mkdir -p "$scratch/include/nanoarrow"
sed -e "s/@NANOARROW_VERSION_MAJOR@/$major/; s/@NANOARROW_VERSION_MINOR@/$minor/; s/@NANOARROW_VERSION_PATCH@/$patch/" \
  -e "s/@NANOARROW_VERSION@/$version/; s/@NANOARROW_NAMESPACE_DEFINE@//" \
  "$source/nanoarrow/nanoarrow_config.h.in" >"$scratch/include/nanoarrow/nanoarrow_config.h"
cd "$scratch"
for file in utils schema array array_stream; do
  gcc -O1 -fPIC -Iinclude -I"$source" -c "$source/nanoarrow/common/$file.c" -o "$file.o"
done
for file in testing/testing integration/c_data_integration; do
  g++ -std=c++17 -O1 -fPIC -Iinclude -I"$source" -c "$source/nanoarrow/$file.cc" -o "$(basename "$file").o"
done
g++ -shared -o "$target/libnanoarrow_c_data_integration.so" ./*.o
echo "built $target/libnanoarrow_c_data_integration.so"
