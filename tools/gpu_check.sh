#!/usr/bin/env bash
# Checks Causeway on a machine with GPUs, where no package registry needs to be reachable: doctor, the demo on the small
# and on a large array, and the tests under tests/gpu. Writes a report for bench/results/. CUDA_VISIBLE_DEVICES says how
# many of the GPUs are used, CAUSEWAY_COMMIT what is checked, where there is no repository to ask.
# Usage: tools/gpu_check.sh /path/to/deno|/path/to/bun OUT_DIR
set -u
runtime=$1 out=$2
name=$(basename "$runtime")
case $name in
  deno) run=("$runtime" run -A --no-lock --node-modules-dir=manual); tests=("$runtime" test -A --no-check --no-lock --node-modules-dir=manual) ;;
  bun) run=("$runtime"); tests=("$runtime" test --timeout 600000) ;;
  *) echo "Expected deno or bun, got $name" >&2; exit 2 ;;
esac
export CAUSEWAY_SETUP=done # nothing is to be installed from here
# Some tests hand memory to the other runtime: it is found beside this one.
for one in deno bun; do
  [ -x "$(dirname "$runtime")/$one" ] && export "CAUSEWAY_${one^^}=$(dirname "$runtime")/$one"
done
mkdir -p "$out"
report=$out/$name.md
status=0
section() { printf '\n## %s\n\n```\n' "$1" >>"$report"; shift; "$@" >>"$report" 2>&1 || { echo "(exit code $?)" >>"$report"; status=1; }; printf '```\n' >>"$report"; }
version="$name $("$runtime" --version | head -n 1 | sed "s/^deno //")"
gpus=$(nvidia-smi --query-gpu=name --format=csv,noheader -i "${CUDA_VISIBLE_DEVICES:-$(nvidia-smi --query-gpu=index --format=csv,noheader | paste -sd,)}")
driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)
commit=${CAUSEWAY_COMMIT:-$(git rev-parse --short HEAD 2>/dev/null || echo unknown)}
printf '# Causeway with %s on %s GPUs\n\n%s, %s, driver %s; commit %s; properties x%s\n' "$version" "$(wc -l <<<"$gpus")" "$(date -u +%F)" "$(head -n 1 <<<"$gpus")" "$driver" "$commit" "${CAUSEWAY_RUNS:-1}" >"$report"
section doctor "${run[@]}" src/cli/main.ts doctor
section demo "${run[@]}" src/cli/main.ts demo
large=$(mktemp -d)/large.npy
if python3 -c "import numpy as np; np.save('$large', np.random.default_rng(7).normal(size=(20000, 64, 32)).astype('f4'))"; then
  section "demo, 164 MB" "${run[@]}" src/cli/main.ts demo "$large"
  rm -f "$large"
fi
section "tests/gpu, and arrays of Python over UCX" "${tests[@]}" tests/gpu tests/ucx/python_arrays_test.ts
sed -i "s/\x1b\[[0-9;]*m//g; s#file://$PWD/##g; s#$PWD/##g" "$report"
cat "$report"
exit $status
