//! The two loads: redis under redis-benchmark, and nginx under wrk, each through the recording proxy.

use core::time::Duration;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::servers::{Program, Running, TempFolder, free_port};
use crate::shell;

pub(crate) const REDIS_SERVER: Program = Program { name: "redis-server", version: ("--version", 3) };
pub(crate) const REDIS_BENCHMARK: Program = Program { name: "redis-benchmark", version: ("--version", 2) };
pub(crate) const NGINX_SERVER: Program = Program { name: "nginx", version: ("-v", 3) };
pub(crate) const WRK: Program = Program { name: "wrk", version: ("-v", 2) };

/// The longest that one step of a load may take.
const STEP_LIMIT: Duration = Duration::from_secs(60);

/// redis-benchmark runs, as its arguments. Those of a row run at the same time, one row after the other. The numbers of requests
/// are such that the whole stays under the limit of a trace.
const REDIS_STEPS: &[&[&str]] = &[
    // Small values, as a cache of counters and sessions has them.
    &["-t set,get,incr -d 16 -c 12 -n 1500 -r 500", "-t hset,sadd,lpush -d 40 -c 8 -n 900 -r 500"],
    &[
        "-t set,get -d 27 -c 10 -n 1200 -r 300",
        "-t set,get -d 75 -c 6 -n 900 -r 300",
        "-t incr -c 5 -n 700 -r 500",
    ],
    &[
        "-t set,get -d 110 -c 8 -n 1000 -r 300",
        "-t set,get -d 180 -c 8 -n 800 -r 300",
        "-t hset -d 55 -c 5 -n 600",
    ],
    // Lists: short requests, long answers.
    &[
        "-t lpush -d 90 -c 8 -n 900",
        "-t lrange_100 -d 60 -c 6 -n 400",
        "-t ping,set -d 300 -c 10 -n 900 -r 200",
    ],
    &[
        "-t lrange_300 -d 25 -c 5 -n 250",
        "-t lrange_600 -d 33 -c 3 -n 120",
        "-t set,get -d 450 -c 8 -n 800 -r 200",
    ],
    // Pipelines: many requests in one read.
    &["-t set,get -d 120 -c 6 -n 6000 -P 16 -r 500", "-t set,get -d 1500 -c 6 -n 1600 -P 4 -r 200"],
    &["-t set,get -d 20 -c 8 -n 20000 -P 50 -r 500", "-t mset -d 200 -c 5 -n 400 -r 200"],
    // Pages, documents, pictures.
    &[
        "-t set,get -d 700 -c 8 -n 700 -r 200",
        "-t set,get -d 1000 -c 8 -n 600 -r 200",
        "-t set,get -d 2200 -c 6 -n 500 -r 200",
    ],
    &[
        "-t set,get -d 3100 -c 8 -n 500 -r 200",
        "-t set,get -d 5000 -c 8 -n 500 -r 200",
        "-t set,get -d 7400 -c 6 -n 300 -r 200",
    ],
    &[
        "-t set,get -d 13000 -c 6 -n 300 -r 100",
        "-t set,get -d 21000 -c 4 -n 200 -r 100",
        "-t set,get,incr -d 64 -c 10 -n 900 -r 500",
    ],
    &[
        "-t set,get -d 48000 -c 5 -n 150 -r 100",
        "-t set,get -d 150000 -c 4 -n 60 -r 20",
        "-t set,get -d 250 -c 10 -n 900 -r 500",
    ],
];

/// How long wrk runs, how many connections, and the longest pause before a request.
const WRK_SECONDS: u64 = 12;
const WRK_CONNECTIONS: &str = "48";

/// Connections that nginx accepts.
const NGINX_CONNECTIONS: usize = 512;

/// Files that nginx serves. Their sizes are spread evenly over the orders of magnitude from the first to the last.
const FILES: usize = 40;
const SMALLEST_FILE_BYTES: f64 = 200.0;
const LARGEST_FILE_BYTES: f64 = 1024.0 * 1024.0;

/// Asks for small files more often than for large ones, with queries and cookies of changing length, and thinks in between.
const WRK_SCRIPT: &str = r#"
local files = 40
function setup(thread)
  thread:set("seed", (seed_counter or 0) + 1)
  seed_counter = (seed_counter or 0) + 1
end
function init(args)
  math.randomseed(seed)
end
function delay()
  return math.random(0, 100)
end
function request()
  local file = math.floor(files * math.random() ^ 1.7)
  local path = "/" .. file .. ".bin"
  if math.random() < 0.4 then
    path = path .. "?q=" .. string.rep("x", math.random(1, 200))
  end
  local headers = { ["User-Agent"] = "wrk", ["Accept"] = "*/*" }
  if math.random() < 0.6 then
    headers["Cookie"] = "session=" .. string.rep("c", math.random(20, 1200))
  end
  return wrk.format("GET", path, headers)
end
"#;

/// A trace that can be made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) programs: &'static [Program],
    /// Starts the server on the port, with its files in the folder.
    start: fn(u16, &Path, &mut Made) -> Result<Running>,
    /// Drives it through the proxy on the port.
    drive: fn(u16, &Path, &mut Made) -> Result<()>,
}

/// How a trace was made.
#[derive(Debug, Default)]
pub(super) struct Made {
    pub(super) versions: Vec<String>,
    pub(super) commands: Vec<String>,
    /// Files that the commands read.
    pub(super) files: Vec<(&'static str, String)>,
}

/// redis.
pub(super) const REDIS: Source = Source {
    name: "redis",
    about: "A redis server and redis-benchmark: requests of some 30 bytes to 150 kB, answers likewise, lists, pipelines.",
    programs: &[REDIS_SERVER, REDIS_BENCHMARK],
    start: start_redis,
    drive: drive_redis,
};

/// nginx.
pub(super) const NGINX: Source = Source {
    name: "nginx",
    about: "An nginx web server and wrk: short requests, and files of 200 B to 1 MiB, the small ones more often; clients that \
            pause for up to 100 ms between requests.",
    programs: &[NGINX_SERVER, WRK],
    start: start_nginx,
    drive: drive_nginx,
};

impl Source {
    /// Records it into `path`.
    pub(super) fn record(&self, path: &Path) -> Result<Made> {
        let mut made = Made::default();
        // Dropped last, after the programs that have files in it.
        let folder = TempFolder::new(format!("bufworks-{}", self.name))?;
        let port = free_port()?;
        let mut server = (self.start)(port, folder.path(), &mut made)?;
        server.wait_for_port(port)?;

        let mut command = shell::cargo();
        command.args([
            "run",
            "--quiet",
            "--release",
            "--package",
            "bufworks-examples",
            "--bin",
            "proxy",
            "--",
        ]);
        // Traces are to have what pools differ in: buffers of many sizes that wait for each other and come back from other threads.
        command.args(["--to", &format!("127.0.0.1:{port}"), "--queue", "8", "--record-name", self.name]);
        command.args(["--record-made-by", &format!("TCP proxy, {}", made.versions.join(", "))]);
        command.arg("--record").arg(path);
        let mut proxy = Running::start(&mut command, true)?;
        let line = proxy.first_line()?;
        let proxy_port = line.trim().rsplit(':').next().and_then(|port| port.parse().ok());
        let proxy_port = proxy_port.with_context(|| format!("the proxy says `{}`", line.trim()))?;
        made.commands.push(format!("proxy --to 127.0.0.1:PORT --queue 8 --record {}.buftrace", self.name));

        (self.drive)(proxy_port, folder.path(), &mut made)?;
        proxy.terminate()?;
        Ok(made)
    }
}

/// The command without this run's ports and folders.
fn noted(command: &Command, program: Program, replacements: &[(&str, &str)]) -> String {
    let args = command.get_args().map(|arg| match arg.to_string_lossy() {
        arg if arg.is_empty() => "''".to_owned(),
        arg => replacements.iter().fold(arg.into_owned(), |arg, (from, to)| arg.replace(from, to)),
    });
    [program.name.to_owned()].into_iter().chain(args).collect::<Vec<_>>().join(" ")
}

fn start_redis(port: u16, folder: &Path, made: &mut Made) -> Result<Running> {
    made.versions.push(REDIS_SERVER.version()?);
    made.versions.push(REDIS_BENCHMARK.version()?);
    let mut command = REDIS_SERVER.command()?;
    command.args(["--bind", "127.0.0.1", "--port", &port.to_string()]);
    command.args(["--save", "", "--appendonly", "no", "--loglevel", "warning", "--dir"]).arg(folder);
    let (port, folder) = (port.to_string(), folder.to_string_lossy());
    made.commands.push(noted(&command, REDIS_SERVER, &[(&port, "PORT"), (&folder, "TMP")]));
    Running::start(&mut command, false)
}

fn drive_redis(port: u16, _folder: &Path, made: &mut Made) -> Result<()> {
    let port = port.to_string();
    for step in REDIS_STEPS {
        let mut running = Vec::new();
        let mut shown = Vec::new();
        for args in *step {
            let mut command = REDIS_BENCHMARK.command()?;
            command.args(["-h", "127.0.0.1", "-p", &port, "-q"]).args(args.split(' '));
            shown.push(noted(&command, REDIS_BENCHMARK, &[(&port, "PROXY")]));
            running.push(Running::start(&mut command, false)?);
        }
        made.commands.push(shown.join(" & "));
        for program in running {
            program.finish(STEP_LIMIT)?;
        }
    }
    Ok(())
}

fn start_nginx(port: u16, folder: &Path, made: &mut Made) -> Result<Running> {
    made.versions.push(NGINX_SERVER.version()?);
    made.versions.push(WRK.version()?);
    let files = folder.join("files");
    fs::create_dir_all(&files)?;
    for number in 0..FILES {
        let part = number as f64 / (FILES - 1) as f64;
        let bytes = SMALLEST_FILE_BYTES * (LARGEST_FILE_BYTES / SMALLEST_FILE_BYTES).powf(part);
        // What is in them does not matter: nothing on the way looks at it.
        fs::write(files.join(format!("{number}.bin")), vec![b'.'; bytes.round() as usize])?;
    }
    let config = nginx_config("PORT", "TMP", NGINX_CONNECTIONS);
    let real = nginx_config(&port.to_string(), &folder.to_string_lossy(), NGINX_CONNECTIONS);
    let path = folder.join("nginx.conf");
    fs::write(&path, real)?;
    made.files.push(("TMP/nginx.conf", config));
    let mut command = NGINX_SERVER.command()?;
    command.arg("-p").arg(folder).arg("-c").arg(&path).args(["-e", "stderr"]);
    made.commands.push(noted(&command, NGINX_SERVER, &[(&folder.to_string_lossy(), "TMP")]));
    Running::start(&mut command, false)
}

/// One process in the foreground that keeps everything in its own folder.
pub(crate) fn nginx_config(port: &str, folder: &str, connections: usize) -> String {
    format!(
        "daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections {connections}; }}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
        root {folder}/files;
    }}
}}
"
    )
}

fn drive_nginx(port: u16, folder: &Path, made: &mut Made) -> Result<()> {
    let script = folder.join("mix.lua");
    fs::write(&script, WRK_SCRIPT)?;
    made.files.push(("TMP/mix.lua", WRK_SCRIPT.trim().to_owned()));
    let mut command = WRK.command()?;
    command.args(["-t", "2", "-c", WRK_CONNECTIONS, "-d", &format!("{WRK_SECONDS}s"), "-s"]).arg(&script);
    command.arg(format!("http://127.0.0.1:{port}/"));
    let (port, folder) = (format!(":{port}/"), folder.to_string_lossy());
    made.commands.push(noted(&command, WRK, &[(&port, ":PROXY/"), (&folder, "TMP")]));
    Running::start(&mut command, false)?.finish(STEP_LIMIT)
}
