#!/bin/sh
# Asks the redis server behind port $1 for what the trace `redis` is to have. The numbers of
# requests are such that the trace stays under its limit.
set -eu
port=$1

# One redis-benchmark for each argument, which are its options; all of them at the same time.
together() {
    running=
    for options; do
        # Several words.
        # shellcheck disable=SC2086
        redis-benchmark -h 127.0.0.1 -p "$port" -q $options >/dev/null &
        running="$running $!"
    done
    for process in $running; do
        wait "$process"
    done
}

# Small values, as a cache of counters and sessions has them.
together '-t set,get,incr -d 16 -c 12 -n 1500 -r 500' \
    '-t hset,sadd,lpush -d 40 -c 8 -n 900 -r 500'
together '-t set,get -d 27 -c 10 -n 1200 -r 300' \
    '-t set,get -d 75 -c 6 -n 900 -r 300' \
    '-t incr -c 5 -n 700 -r 500'
together '-t set,get -d 110 -c 8 -n 1000 -r 300' \
    '-t set,get -d 180 -c 8 -n 800 -r 300' \
    '-t hset -d 55 -c 5 -n 600'

# Lists: short requests, long answers.
together '-t lpush -d 90 -c 8 -n 900' \
    '-t lrange_100 -d 60 -c 6 -n 400' \
    '-t ping,set -d 300 -c 10 -n 900 -r 200'
together '-t lrange_300 -d 25 -c 5 -n 250' \
    '-t lrange_600 -d 33 -c 3 -n 120' \
    '-t set,get -d 450 -c 8 -n 800 -r 200'

# Pipelines: many requests in one read.
together '-t set,get -d 120 -c 6 -n 6000 -P 16 -r 500' \
    '-t set,get -d 1500 -c 6 -n 1600 -P 4 -r 200'
together '-t set,get -d 20 -c 8 -n 20000 -P 50 -r 500' \
    '-t mset -d 200 -c 5 -n 400 -r 200'

# Pages, documents, pictures.
together '-t set,get -d 700 -c 8 -n 700 -r 200' \
    '-t set,get -d 1000 -c 8 -n 600 -r 200' \
    '-t set,get -d 2200 -c 6 -n 500 -r 200'
together '-t set,get -d 3100 -c 8 -n 500 -r 200' \
    '-t set,get -d 5000 -c 8 -n 500 -r 200' \
    '-t set,get -d 7400 -c 6 -n 300 -r 200'
together '-t set,get -d 13000 -c 6 -n 300 -r 100' \
    '-t set,get -d 21000 -c 4 -n 200 -r 100' \
    '-t set,get,incr -d 64 -c 10 -n 900 -r 500'
together '-t set,get -d 48000 -c 5 -n 150 -r 100' \
    '-t set,get -d 150000 -c 4 -n 60 -r 20' \
    '-t set,get -d 250 -c 10 -n 900 -r 500'
