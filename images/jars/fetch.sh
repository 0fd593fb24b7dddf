#!/bin/sh
# fetch.sh SET TARGET: put the jars of images/jars/SET into the folder TARGET, by Maven, and check them against SHA256SUMS.
# What Maven itself uses on the way is checked against maven.lock, before it is used. `make renew-jars` writes both.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
set_name=$1
target=$2
mkdir -p "$target"
target=$(CDPATH='' cd -- "$target" && pwd)
"$here/maven.sh" "$here/maven.lock" --file "$here/$set_name/pom.xml" dependency:copy-dependencies \
  -DoutputDirectory="$target" -DincludeScope=runtime \
  -DexcludeGroupIds=io.netty,org.slf4j,commons-codec,commons-logging
cd "$target"
sha256sum --check --strict --quiet "$here/$set_name/SHA256SUMS"
listed=$(wc -l <"$here/$set_name/SHA256SUMS")
found=$(find . -name '*.jar' | wc -l)
[ "$listed" -eq "$found" ] || { echo "$set_name: $found jars were fetched, SHA256SUMS lists $listed" >&2; exit 1; }
