#!/bin/sh
# Asks the nginx server behind port $1 for what the trace `nginx` is to have.
set -eu
exec wrk -t 2 -c 48 -d 12s -s "$(dirname "$0")/mix.lua" "http://127.0.0.1:$1/"
