#!/bin/sh
# maven.sh LOCK ARGUMENTS…: run Maven, which may use only what LOCK lists: each line a SHA-256, two spaces, an artifact.
# Plugins, what they need, and every POM are artifacts, too. It ends with code 3 before anything else is used.
# TIDEGATE_LOCK=write adds what Maven uses to LOCK instead.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
lock=$1
shift
guard=$(mktemp -d)
trap 'rm -rf "$guard"' EXIT
maven=$(dirname -- "$(dirname -- "$(readlink -f "$(command -v mvn)")")")
# The loader of Maven 3.8 passes over newer bytecode without a word.
javac --release 11 -proc:none -d "$guard/classes" -classpath "$maven/lib/*" "$here/guard/ArtifactGuard.java"
mkdir -p "$guard/classes/META-INF/sisu"
echo ArtifactGuard >"$guard/classes/META-INF/sisu/javax.inject.Named"
[ "${TIDEGATE_LOCK:-}" != write ] || set -- -Dtidegate.lock.write=true "$@"
mvn --batch-mode --quiet --strict-checksums "-Dmaven.ext.class.path=$guard/classes" "-Dtidegate.lock=$lock" \
  "-Dtidegate.lock.loaded=$guard/loaded" "$@"
[ -e "$guard/loaded" ] || { echo "maven.sh: this Maven did not load the guard, so nothing was compared with $lock" >&2; exit 1; }
