#!/bin/sh
# build.sh TARGET CLASSPATH: compile the Java code beside this file into the jar TARGET. The same code by the same compiler
# makes the same bytes.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
mkdir -p "$(dirname -- "$1")"
target=$(CDPATH='' cd -- "$(dirname -- "$1")" && pwd)/$(basename -- "$1")
classes=$(mktemp -d)
trap 'rm -rf "$classes"' EXIT
find "$here" -name '*.java' | LC_ALL=C sort >"$classes/sources"
# Not looked at: annotations of Scala that its class files name, and jars that others of the class path would like to have.
javac --release 17 -encoding UTF-8 -proc:none -Xlint:all,-classfile,-path -Werror -d "$classes/out" -classpath "$2" "@$classes/sources"
cd "$classes/out"
find . -name '*.class' | LC_ALL=C sort >"$classes/listed"
jar --create --file "$classes/jar" --no-manifest --date 2026-01-01T00:00:00+00:00 "@$classes/listed"
cp "$classes/jar" "$target.$$"
mv "$target.$$" "$target"
