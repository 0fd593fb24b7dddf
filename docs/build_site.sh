#!/usr/bin/env bash
# build_site.sh build|serve: build the site of all pages into build/site, strictly (a dead link or anchor fails), or show it on
# 127.0.0.1:8000. The generator is installed into an environment of its own, by the hashes of locks/docs.lock.
set -euo pipefail
cd "$(dirname "$0")/.."
cache=${TIDEGATE_CACHE:-$HOME/.cache/tidegate}
environment=$cache/docs/$(sha256sum locks/docs.lock | cut -c1-12)
if ! [ -e "$environment/.complete" ]; then
  "$cache/boot/bin/uv" venv --quiet --clear --python "$(command -v python3)" "$environment"
  VIRTUAL_ENV=$environment "$cache/boot/bin/uv" pip sync --system-certs --quiet --require-hashes locks/docs.lock
  touch "$environment/.complete"
fi
python3 docs/gather_site.py build/site-source
rm -rf build/site
cp docs/zensical.toml build/
(cd build && "$environment/bin/zensical" build --clean --strict)
[ "$1" = build ] || exec python3 -m http.server --bind 127.0.0.1 --directory build/site 8000
