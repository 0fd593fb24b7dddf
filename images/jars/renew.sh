#!/bin/sh
# renew.sh: write the hashes of everything that Maven fetches anew, from a registry asked afresh: maven.lock and each SHA256SUMS
# here, and those of the development cluster's Kafka broker. Read the difference before you commit it: it is what you trust from then on.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
broker=$here/../../devcluster/kafka
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TIDEGATE_LOCK=write

renew() { # POM SUMS LOCK OPTIONS…: fetch into an empty folder, through a repository that was empty at first
  pom=$1 sums=$2 lock=$3
  shift 3
  rm -rf "$work/out"
  "$here/maven.sh" "$work/$lock" "-Dmaven.repo.local=$work/repository" --file "$pom" \
    dependency:copy-dependencies "-DoutputDirectory=$work/out" -DincludeScope=runtime "$@"
  (cd "$work/out" && sha256sum -- *.jar | LC_ALL=C sort -k 2) >"$sums"
}

for pom in "$here"/*/pom.xml; do
  renew "$pom" "$(dirname "$pom")/SHA256SUMS" images.lock \
    -DexcludeGroupIds=io.netty,org.slf4j,commons-codec,commons-logging
done
renew "$broker/pom.xml" "$broker/jars.sha256" broker.lock
LC_ALL=C sort -u -k 2 "$work/images.lock" >"$here/maven.lock"
LC_ALL=C sort -u -k 2 "$work/broker.lock" >"$broker/maven.lock"
git -C "$here" diff --stat -- "$here" "$broker"
