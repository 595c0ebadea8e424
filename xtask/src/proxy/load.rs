//! The servers, the clients, and what one turn of a pool between them shows.

use core::net::{Ipv4Addr, SocketAddr};
use core::time::Duration;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use anyhow::{Context, Result, ensure};
use xshell::{Shell, TempDir};

use crate::shell::{self, command};
use crate::traces::load::{NGINX_SERVER, REDIS_BENCHMARK, REDIS_SERVER, WRK, serve};
use crate::traces::servers::{Program, Running, Talk};

pub(super) const PROGRAMS: [Program; 4] = [REDIS_SERVER, REDIS_BENCHMARK, NGINX_SERVER, WRK];

/// Bytes of the values in redis.
pub(super) const VALUE_BYTES: usize = 512;
/// Bytes of the file that nginx serves, as `examples/loads/nginx-serve.sh` writes it.
pub(super) const FILE_BYTES: usize = 4096;

const PATIENCE: Duration = Duration::from_secs(20);
/// An idle connection does nothing, but it is idle only when its last buffer has come back.
const SETTLE: Duration = Duration::from_millis(100);

/// How much there is to do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) clients: usize,
    pub(super) requests: u64,
    pub(super) seconds: u64,
}

/// What one turn showed.
#[derive(Debug, Clone)]
pub(super) struct Run {
    /// `None`: no proxy.
    pub(super) pool: Option<&'static str>,
    /// Requests a second, of redis.
    pub(super) set: f64,
    pub(super) get: f64,
    /// Requests a second, of nginx.
    pub(super) http: f64,
    /// What wrk calls socket errors and bad answers.
    pub(super) http_errors: u64,
    pub(super) proxy: Option<Seen>,
}

/// What the proxy itself has to say.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen {
    /// Buffers in use while all clients are idle.
    pub(super) idle_buffers: u64,
    /// Resident memory then, in KiB; and the most ever, under either load.
    pub(super) idle_kib: u64,
    pub(super) redis_peak_kib: u64,
    pub(super) http_peak_kib: u64,
    /// Connections that an error ended under redis-benchmark, which closes its own in good order.
    pub(super) broken: u64,
    /// Connections that were never passed on.
    pub(super) failed: u64,
}

impl Run {
    /// No request failed, and nobody held a buffer for nothing.
    pub(super) fn check(&self) -> Result<()> {
        ensure!(self.http_errors == 0, "wrk met {} errors", self.http_errors);
        let seen = self.proxy.unwrap_or_default();
        ensure!(seen.broken == 0 && seen.failed == 0, "connections were lost: {seen:?}");
        ensure!(seen.idle_buffers == 0, "idle connections hold {} buffers", seen.idle_buffers);
        Ok(())
    }

    /// In a line.
    pub(super) fn told(&self) -> String {
        let name = self.pool.unwrap_or("no proxy");
        format!(
            "{name}: SET {:.0}/s, GET {:.0}/s, HTTP {:.0}/s, {:?}",
            self.set, self.get, self.http, self.proxy
        )
    }
}

/// Two servers that stay the same for all.
pub(super) struct Site {
    redis: (u16, Running),
    nginx: (u16, Running),
    profile: &'static str,
    /// Dropped last: the servers have files in it.
    _folder: TempDir,
}

impl Site {
    /// `profile` is cargo's folder with the proxy.
    pub(super) fn start(profile: &'static str) -> Result<Self> {
        let folder = Shell::new()?.create_temp_dir()?;
        let [redis, nginx] = ["redis", "nginx"].map(|name| {
            let own = folder.path().join(name);
            fs::create_dir_all(&own)?;
            serve(name, &own)
        });
        Ok(Self { redis: redis?, nginx: nginx?, profile, _folder: folder })
    }

    /// A turn of `pool`, in two fresh proxies: one before redis, one before nginx.
    pub(super) fn measure(&self, pool: Option<&'static str>, load: &Load) -> Result<Run> {
        let Some(name) = pool else {
            let (set, get) = redis_benchmark(self.redis.0, load)?;
            let (http, http_errors) = wrk(self.nginx.0, load)?;
            return Ok(Run { pool, set, get, http, http_errors, proxy: None });
        };
        let mut seen = Seen::default();
        let mut proxy = Proxy::start(self.profile, name, self.redis.0)?;
        (seen.idle_buffers, seen.idle_kib) = proxy.idle(load.clients)?;
        let (set, get) = redis_benchmark(proxy.port, load)?;
        seen.redis_peak_kib = proxy.memory("VmHWM")?;
        let (broken, failed) = proxy.end()?;
        (seen.broken, seen.failed) = (broken, failed);

        let proxy = Proxy::start(self.profile, name, self.nginx.0)?;
        let (http, http_errors) = wrk(proxy.port, load)?;
        seen.http_peak_kib = proxy.memory("VmHWM")?;
        // When its time is up, wrk drops its connections with answers under way: those are broken, and none is lost.
        let (_, failed) = proxy.end()?;
        seen.failed += failed;
        Ok(Run { pool, set, get, http, http_errors, proxy: Some(seen) })
    }
}

/// The proxy, running.
struct Proxy {
    running: Running,
    talk: Talk,
    port: u16,
}

impl Proxy {
    fn start(profile: &str, pool: &str, upstream: u16) -> Result<Self> {
        let program = format!("{profile}/proxy{}", std::env::consts::EXE_SUFFIX);
        let (program, upstream) = (shell::target_folder().join(program), upstream.to_string());
        let mut command = command!("{program} --status --pool {pool} --to 127.0.0.1:{upstream}");
        let (running, mut talk) = Running::start_talking(&mut command)?;
        let line = talk.line()?;
        let port = line.rsplit(':').next().and_then(|port| port.parse().ok());
        let port = port.with_context(|| format!("the proxy says `{line}`"))?;
        Ok(Self { running, talk, port })
    }

    /// Buffers in use and memory in KiB, while `clients` clients are connected that have asked redis something and now do nothing.
    fn idle(&mut self, clients: usize) -> Result<(u64, u64)> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let mut sockets = Vec::new();
        for _ in 0..clients {
            let mut socket = TcpStream::connect(address).context("cannot connect to the proxy")?;
            socket.set_read_timeout(Some(PATIENCE))?;
            socket.write_all(b"PING\r\n")?;
            sockets.push(socket);
        }
        for socket in &mut sockets {
            let mut answer = [0; 7];
            socket.read_exact(&mut answer).context("no answer from redis")?;
            ensure!(&answer == b"+PONG\r\n", "redis answers {answer:?}");
        }
        std::thread::sleep(SETTLE);
        let status = self.talk.ask()?;
        let connections = number_before(&status, " connections")?;
        ensure!(connections == clients as u64, "{connections} connections are open: {status}");
        Ok((number_before(&status, " buffers in use")?, self.memory("VmRSS")?))
    }

    /// A field of what the system says of the process, in KiB.
    fn memory(&self, field: &str) -> Result<u64> {
        let path = format!("/proc/{}/status", self.running.id());
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        let line =
            text.lines().find(|line| line.starts_with(field)).with_context(|| format!("no {field}"))?;
        number_before(line, " kB")
    }

    /// Stops it. Returns how many connections were broken, and how many failed.
    fn end(self) -> Result<(u64, u64)> {
        self.running.terminate()?;
        let report = self.talk.rest()?;
        Ok((number_before(&report, " broken")?, number_before(&report, " more failed")?))
    }
}

/// SET and GET of random keys; requests a second of each.
fn redis_benchmark(port: u16, load: &Load) -> Result<(f64, f64)> {
    let (port, bytes) = (port.to_string(), VALUE_BYTES.to_string());
    let (clients, requests) = (load.clients.to_string(), load.requests.to_string());
    redis_rates(&shell::output(&mut command!(
        "redis-benchmark -h 127.0.0.1 -p {port} -t set,get -r 100000 -P 1 -d {bytes} -c {clients} -n {requests} --csv"
    ))?)
}

fn redis_rates(csv: &str) -> Result<(f64, f64)> {
    let rate = |test: &str| {
        let row = csv.lines().find_map(|line| line.strip_prefix(&format!("\"{test}\",\"")));
        let rate = row.and_then(|row| row.split('"').next()).and_then(|rate| rate.parse().ok());
        rate.with_context(|| format!("redis-benchmark has no {test}: {csv}"))
    };
    Ok((rate("SET")?, rate("GET")?))
}

/// Requests a second, and errors.
fn wrk(port: u16, load: &Load) -> Result<(f64, u64)> {
    let [port, clients, seconds] = [port.into(), load.clients as u64, load.seconds].map(|n| n.to_string());
    wrk_result(&shell::output(&mut command!(
        "wrk -t 2 -c {clients} -d {seconds}s --timeout 20s http://127.0.0.1:{port}/file.bin"
    ))?)
}

fn wrk_result(text: &str) -> Result<(f64, u64)> {
    let value = |name: &str| text.lines().find_map(|line| line.trim().strip_prefix(name));
    let rate = value("Requests/sec:").and_then(|rate| rate.trim().parse().ok());
    let rate = rate.with_context(|| format!("wrk says no rate: {text}"))?;
    let bad = value("Non-2xx or 3xx responses:").map_or(Ok(0), |bad| bad.trim().parse())?;
    let errors = value("Socket errors:").unwrap_or_default().split(|c: char| !c.is_ascii_digit());
    let errors: u64 = errors.filter_map(|count| count.parse::<u64>().ok()).sum();
    Ok((rate, errors + bad))
}

/// The number that stands in `text` right before the first `word`.
fn number_before(text: &str, word: &str) -> Result<u64> {
    let before = text.split_once(word).map(|(before, _)| before);
    let digits = before.and_then(|before| before.rsplit(|c: char| !c.is_ascii_digit()).next());
    let number = digits.and_then(|digits| digits.parse().ok());
    number.with_context(|| format!("no number before `{word}` in `{text}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_redis_benchmark_prints() {
        let csv = "\"test\",\"rps\",\"avg_latency_ms\"\n\"SET\",\"70921.98\",\"7.1\"\n\"GET\",\"71942.45\",\"6.9\"\n";
        assert_eq!(redis_rates(csv).unwrap(), (70921.98, 71942.45));
        assert!(redis_rates("\"SET\",\"1.0\"\n").is_err());
    }

    #[test]
    fn what_wrk_prints() {
        let good =
            "  43210 requests in 2.01s, 180.1MB read\nRequests/sec:  21498.12\nTransfer/sec:  89.6MB\n";
        assert_eq!(wrk_result(good).unwrap(), (21498.12, 0));
        let bad = "  Socket errors: connect 1, read 20, write 0, timeout 300\n  Non-2xx or 3xx responses: 5\nRequests/sec: 7\n";
        assert_eq!(wrk_result(bad).unwrap(), (7.0, 326));
        assert!(wrk_result("").is_err());
    }

    #[test]
    fn what_the_proxy_prints() {
        let status = "status: 1000 connections, 2 buffers in use, 64 bytes in use, 4096 bytes reserved";
        assert_eq!(number_before(status, " connections").unwrap(), 1000);
        assert_eq!(number_before(status, " buffers in use").unwrap(), 2);
        let report = "connections  12 (3 broken, 0 idle, 0 stopped; 4 more failed)";
        assert_eq!(
            (number_before(report, " broken").unwrap(), number_before(report, " more failed").unwrap()),
            (3, 4)
        );
        assert!(number_before(report, " lost").is_err());
    }
}
