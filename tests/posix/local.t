#!/bin/bash
# The suite on the local file system: shows that the cases expect what Linux does, apart from any code of ours.
set -eu
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP needs root"; exit 0; }
dir=$(mktemp -d "${TMPDIR:-/tmp}/posix-local.XXXXXX")
trap 'rmdir "$dir"' EXIT
"${MORTAR_BUILD:-build}/tests/posix/posix_suite" "$dir" "$@"
