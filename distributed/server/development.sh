#!/usr/bin/env bash
# Starts Temporal's own server for development: one process, loopback only, SQLite in DIR.
# Usage: development.sh [DIR]
#   DIR                    directory of the database (default ~/.local/state/coven/temporal)
#   COVEN_TEMPORAL_PORT    first of eight ports; clients connect to it (default 7233)
#   COVEN_TEMPORAL_SERVER  the server's binary (default: the one that .ci/temporal has built)
set -euo pipefail
umask 077
here=$(cd "$(dirname "$0")" && pwd)
dir=${1:-${XDG_STATE_HOME:-$HOME/.local/state}/coven/temporal}
mkdir -p "$dir"
export COVEN_TEMPORAL_DB=$dir/temporal.db COVEN_TEMPORAL_SETUP=$here
exec "${COVEN_TEMPORAL_SERVER:-$here/../../.tools/temporal/server}" \
	--config-file "$here/development.yaml" --allow-no-auth start
