#!/usr/bin/env bash
# sbom.sh OUT [--no-images]: write the bills of materials into the folder OUT, as CycloneDX JSON: of the Python distribution (from
# its locks, with hashes), of the images as they were last built, and of our own jar in them. Prints their paths.
# The tool is installed into an environment of its own, by the hashes of locks/sbom.lock.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$1
cache=${TIDEGATE_CACHE:-$HOME/.cache/tidegate}
environment=$cache/sbom/$(sha256sum locks/sbom.lock | cut -c1-12)
if ! [ -e "$environment/.complete" ]; then
  "$cache/boot/bin/uv" venv --quiet --clear --python "$(command -v python3)" "$environment"
  VIRTUAL_ENV=$environment "$cache/boot/bin/uv" pip sync --system-certs --quiet --require-hashes locks/sbom.lock
  touch "$environment/.complete"
fi
rm -rf "$out"
mkdir -p "$out"
for part in operator spark runtime; do
  # It warns that it knows of no dependencies between the lines.
  PYTHONWARNINGS=ignore "$environment/bin/cyclonedx-py" requirements "locks/$part.lock" --pyproject pyproject.toml \
    --output-reproducible --of JSON --output-file "$out/python-$part.cdx.json"
done
if [ "${2:-}" != --no-images ]; then
  PYTHONPATH=. "$environment/bin/python" -m supply_chain.bills "$out" --layout "$cache/images/oci" --image tidegate-operator \
    --image tidegate-spark
fi
ls "$out"/*.cdx.json
