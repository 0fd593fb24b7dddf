#!/usr/bin/env bash
# Resolve the dependencies of pyproject.toml and write them, hash-pinned, to locks/.
# The resolver's own lock file names download addresses, so only its export is kept.
set -euo pipefail
cd "$(dirname "$0")/.."
uv=${TIDEGATE_CACHE:-$HOME/.cache/tidegate}/boot/bin/uv
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp pyproject.toml README.md "$work/"
"$uv" lock --system-certs --quiet --python 3.11 --project "$work"
for extra in operator spark; do
  "$uv" export --quiet --project "$work" --python 3.11 --extra "$extra" --no-emit-project --no-header --no-annotate \
    --format requirements-txt >"locks/$extra.lock"
done
"$uv" export --quiet --project "$work" --python 3.11 --only-group runtime --no-emit-project --no-header --no-annotate \
  --format requirements-txt >locks/runtime.lock
for group in build sbom docs; do
  "$uv" export --quiet --project "$work" --python 3.11 --only-group "$group" --no-emit-project --no-header --no-annotate \
    --format requirements-txt >"locks/$group.lock"
done
"$uv" export --quiet --project "$work" --python 3.11 --all-extras --no-emit-project --no-header --no-annotate \
  --format requirements-txt >locks/dev.lock
# The line of Spark before the newest; everything else is what it is there.
mkdir "$work/before"
sed 's/"pyspark==[^"]*"/"pyspark==4.1.4"/' pyproject.toml >"$work/before/pyproject.toml"
cp README.md "$work/before/"
"$uv" lock --system-certs --quiet --python 3.11 --project "$work/before"
"$uv" export --quiet --project "$work/before" --python 3.11 --extra spark --no-emit-project --no-header --no-annotate \
  --format requirements-txt >locks/spark-4.1.lock
if grep -E 'https?://|--(extra-)?index-url' locks/*.lock; then
  echo "a lock file names an address (above)" >&2
  exit 1
fi
wc -l locks/*.lock
