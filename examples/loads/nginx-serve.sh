#!/bin/sh
# nginx on port $1, as one process in the foreground that keeps everything in the folder $2.
set -eu
port=$1
folder=$2

# Forty files whose sizes are spread evenly over the orders of magnitude from 200 bytes to 1 MiB,
# and one more. What is in them does not matter: nothing on the way looks at it.
mkdir -p "$folder/files"
awk 'BEGIN {
    for (n = 0; n < 40; n++) printf "%d.bin %d\n", n, 200 * (1048576 / 200) ^ (n / 39) + 0.5
    print "file.bin 4096"
}' | while read -r name bytes; do
    head -c "$bytes" /dev/zero >"$folder/files/$name"
done

# Each client of a proxy is a connection.
cat >"$folder/nginx.conf" <<END
daemon off;
master_process off;
pid $folder/nginx.pid;
error_log stderr warn;
events { worker_connections 8192; }
http {
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000;
    client_body_temp_path $folder/body;
    proxy_temp_path $folder/proxy;
    fastcgi_temp_path $folder/fastcgi;
    uwsgi_temp_path $folder/uwsgi;
    scgi_temp_path $folder/scgi;
    server {
        listen 127.0.0.1:$port;
        root $folder/files;
    }
}
END
exec nginx -p "$folder" -c "$folder/nginx.conf" -e stderr
