#!/bin/sh
# Runs a load through the TCP proxy, in front of a server: `through-proxy.sh SERVER [PROXY OPTIONS] -- LOAD...`. The server is `redis` or
# `nginx`; the load gets the proxy's port as its last argument. The proxy says at its end what its connections and pools did.
#
#     sh examples/loads/through-proxy.sh redis --pool ring -- redis-benchmark -q -t set,get -d 512 -c 1000 -n 50000 -p
#     sh examples/loads/through-proxy.sh redis --queue 8 --record-name redis --record benches/traces/redis.buftrace \
#         -- sh examples/loads/redis-load.sh
set -eu
server=$1
shift
options=
while [ "$1" != -- ]; do
    options="$options $1"
    shift
done
shift

cargo build --quiet --release --package bufworks-examples --bin proxy
folder=$(mktemp -d)
port=$((20000 + $$ % 10000))
sh "$(dirname "$0")/$server-serve.sh" "$port" "$folder" &
serving=$!
trap 'kill "$serving"; wait; rm -rf "$folder"' EXIT
sleep 2

# Several words.
# shellcheck disable=SC2086
target/release/proxy --to "127.0.0.1:$port" $options >"$folder/proxy" &
proxy=$!
sleep 1
"$@" "$(sed -n 's/^listening on .*://p' "$folder/proxy")"
kill "$proxy"
wait "$proxy"
cat "$folder/proxy"
