#!/bin/sh
# A redis server on port $1 that writes nothing; the folder $2 is its own.
set -eu
exec redis-server --bind 127.0.0.1 --port "$1" --dir "$2" --save '' --appendonly no \
    --loglevel warning --tcp-backlog 4096
