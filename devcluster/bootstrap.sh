#!/usr/bin/env bash
# Install what this machine lacks: Debian packages (as root on Debian), Prometheus' programs from a Debian package (only
# unpacked), then the Python environment of locks/dev.lock.
# Prints the environment's path as its last line. Nothing to do: well under a second. Calls at once wait for each other.
set -euo pipefail
cd "$(dirname "$0")/.."
cache=${TIDEGATE_CACHE:-$HOME/.cache/tidegate}

# package:what it brings, a command or a path. What is there is taken, whoever installed it.
python_parts=(python3:python3 python3-venv:PYTHON_VENV)
cluster_parts=(
  containerd:containerd runc:runc containernetworking-plugins:/usr/lib/cni/ptp busybox-static:STATIC_BUSYBOX
  iptables:iptables ipset:ipset conntrack:conntrack iproute2:ip util-linux:nsenter openssl:openssl
  buildah:buildah mmdebstrap:mmdebstrap skopeo:skopeo
  openjdk-17-jdk-headless:javac maven:mvn git:git ca-certificates:/etc/ssl/certs/ca-certificates.crt
)

say() { echo "setup: $*" >&2; }

have() {
  case $1 in
    /*) test -e "$1" ;;
    PYTHON_VENV) python3 -c 'import ensurepip, venv' 2>/dev/null ;;
    # One that needs libraries of the machine cannot run inside the small images made of it.
    STATIC_BUSYBOX) test -x /bin/busybox && ! ldd /bin/busybox >/dev/null 2>&1 ;;
    *) command -v "$1" >/dev/null || test -x "/usr/sbin/$1" || test -x "/sbin/$1" ;;
  esac
}

missing_packages() { # of the given parts, those that are missing
  local part
  for part in "$@"; do
    have "${part#*:}" || echo "${part%%:*}"
  done
}

install_packages() {
  say "apt-get install $*"
  export DEBIAN_FRONTEND=noninteractive
  # Slim images leave this folder out, and the Java package fails without it.
  mkdir -p /usr/share/man/man1
  local try
  for try in 1 2 3; do
    if apt-get -o DPkg::Lock::Timeout=300 update -qq &&
      apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "$@" >"$cache/apt.log" 2>&1; then
      return
    fi
    say "attempt $try failed"
    sleep $((try * 5))
  done
  tail -n 20 "$cache/apt.log" >&2
  exit 1
}

ensure_packages() {
  local python cluster
  python=$(missing_packages "${python_parts[@]}")
  cluster=$(missing_packages "${cluster_parts[@]}")
  [ -n "$python$cluster" ] || return 0
  if [ "$(id -u)" = 0 ] && [ -e /etc/debian_version ] && command -v apt-get >/dev/null; then
    # shellcheck disable=SC2086 # one word per package
    install_packages $python $cluster
  else
    say "missing, named as Debian packages (this script installs them only as root on Debian):" $python $cluster
    [ -z "$python" ] || exit 1
    say "checks and unit tests work without them; clusters, images and integration tests do not"
  fi
}

# Unpacked into the cache and not installed: the package would start a server on this machine, and bring fonts with it.
ensure_prometheus() {
  have prometheus && have promtool && return
  local place=$cache/prometheus
  test -x "$place/usr/bin/promtool" && return
  if ! [ -e /etc/debian_version ] || ! command -v apt-get >/dev/null; then
    say "missing: prometheus and promtool; the tests of metrics and alerts need them"
    return
  fi
  say "unpacking the Debian package prometheus into $place"
  rm -rf "$place" "$place.partial"
  mkdir -p "$place.partial"
  if (cd "$place.partial" && download_prometheus && dpkg-deb --extract prometheus_*.deb . && rm prometheus_*.deb); then
    mv "$place.partial" "$place"
  else
    tail -n 20 "$cache/apt.log" >&2
    say "no prometheus and promtool; the tests of metrics and alerts need them"
  fi
}

download_prometheus() {
  apt-get -qq download prometheus >"$cache/apt.log" 2>&1 && return
  apt-get -o DPkg::Lock::Timeout=300 update -qq >"$cache/apt.log" 2>&1 && apt-get -qq download prometheus >>"$cache/apt.log" 2>&1
}

require_python() {
  if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    say "python3 is $(python3 --version 2>&1); needed is 3.11 or newer"
    exit 1
  fi
}

hash_of() { sha256sum "$1" | cut -c1-12; }

# Each environment carries the hash of the lock file it was completed with; without the right one, work is left to do.
done_with() { [ "$(cat "$1/.lock-hash" 2>/dev/null)" = "$2" ] && [ -x "$1/bin/python" ]; }

ensure_boot() { # the environment that holds uv and Go
  done_with "$cache/boot" "$1" && return
  say "installing uv and Go into $cache/boot"
  [ -x "$cache/boot/bin/python" ] || python3 -m venv "$cache/boot"
  "$cache/boot/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r locks/bootstrap.lock
  echo "$1" >"$cache/boot/.lock-hash"
}

ensure_venv() {
  done_with "$1" "$2" && return
  say "installing the Python packages of locks/dev.lock into $1"
  export UV_PYTHON_DOWNLOADS=never
  [ -x "$1/bin/python" ] || "$cache/boot/bin/uv" venv --quiet --python "$(command -v python3)" "$1"
  # PySpark's wheel is half a gigabyte of jars, which are compressed already.
  printf '[bdist_wheel]\ncompression = stored\n' >"$cache/wheels.cfg"
  # With bytecode, since tests start many processes: beside the sources, whatever the caller's environment says.
  # A package that comes as sources is built with what is pinned, too.
  env -u PYTHONPYCACHEPREFIX DIST_EXTRA_CONFIG="$cache/wheels.cfg" VIRTUAL_ENV="$1" \
    "$cache/boot/bin/uv" pip sync --system-certs --quiet --require-hashes --require-build-hashes \
    --build-constraints locks/build.lock --compile-bytecode locks/dev.lock
  link_bytecode "$1"
  echo "$2" >"$1/.lock-hash"
}

# With PYTHONPYCACHEPREFIX, which the Makefile and the clusters' programs set, Python looks for bytecode there alone.
link_bytecode() {
  "$1/bin/python" -X pycache_prefix="$cache/bytecode" - "$1" <<'EOF'
import os
import sys
from importlib.util import cache_from_source
from pathlib import Path

for beside in Path(sys.argv[1]).absolute().rglob("__pycache__/*.pyc"):
    target = Path(cache_from_source(str(beside.parents[1] / f"{beside.name.split('.')[0]}.py")))
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    os.link(beside, target)
EOF
}

mkdir -p "$cache"
exec 9>"$cache/setup.lock"
flock 9
ensure_packages
ensure_prometheus
require_python
ensure_boot "$(hash_of locks/bootstrap.lock)"
dev_hash=$(hash_of locks/dev.lock)
ensure_venv "$cache/venv/$dev_hash" "$dev_hash"
echo "$cache/venv/$dev_hash"
