//! Uploads and downloads on loopback, over hyper and axum: bodies are right under a budget, refusals are as configured, and nothing is
//! lost when a client leaves.

use core::future::pending;
use core::net::SocketAddr;
use core::time::Duration;

use axum::Router;
use axum::routing::post;
use bufworks::shard::ShardPool;
use bufworks_web::uploads::{Memory, Upload, router, serve, service};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

const CONNECTIONS: usize = 500;
const BUDGET: usize = 8 << 20;
const LIMIT: usize = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(60);

fn memory(patience: Duration) -> Memory {
    let pool = ShardPool::builder().max_bytes(BUDGET).build().unwrap();
    Memory { pool, limit: LIMIT, patience }
}

/// Listens for all clients at once.
fn listen() -> (TcpListener, SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let listener = socket.listen(1024).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

fn start(service: Router) -> SocketAddr {
    let (listener, address) = listen();
    tokio::spawn(serve(listener, TowerToHyperService::new(service)));
    address
}

struct Client(BufReader<TcpStream>);

impl Client {
    async fn new(to: SocketAddr) -> Self {
        Self(BufReader::new(TcpStream::connect(to).await.unwrap()))
    }

    async fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        timeout(PATIENCE, self.0.read_line(&mut line)).await.unwrap().unwrap();
        line
    }

    /// Reads an answer: its status, and the body with its length in front, or in chunks.
    async fn answer(&mut self) -> (u16, Vec<u8>) {
        let status = self.line().await;
        let (mut length, mut is_chunked) = (0, false);
        loop {
            let header = self.line().await.to_lowercase();
            match header.trim_end().split_once(": ") {
                Some(("content-length", value)) => length = value.parse().unwrap(),
                Some(("transfer-encoding", value)) => is_chunked = value == "chunked",
                Some(_) => {}
                None => break,
            }
        }
        let mut body = Vec::new();
        loop {
            if is_chunked {
                length = usize::from_str_radix(self.line().await.trim_end(), 16).unwrap();
            }
            let begin = body.len();
            body.resize(begin + length, 0);
            self.0.read_exact(&mut body[begin..]).await.unwrap();
            if is_chunked {
                assert_eq!(self.line().await, "\r\n");
            }
            if !is_chunked || length == 0 {
                return (status[9..12].parse().unwrap(), body);
            }
        }
    }

    async fn upload(&mut self, bytes: &[u8]) -> (u16, Vec<u8>) {
        self.send(&format!("POST / HTTP/1.1\r\nhost: here\r\ncontent-length: {}\r\n\r\n", bytes.len())).await;
        self.0.write_all(bytes).await.unwrap();
        self.answer().await
    }

    async fn upload_in_chunks(&mut self, bytes: &[u8]) -> (u16, Vec<u8>) {
        self.send("POST / HTTP/1.1\r\nhost: here\r\ntransfer-encoding: chunked\r\n\r\n").await;
        for chunk in bytes.chunks(10_000) {
            self.send(&format!("{:x}\r\n", chunk.len())).await;
            self.0.write_all(chunk).await.unwrap();
            self.send("\r\n").await;
        }
        self.send("0\r\n\r\n").await;
        self.answer().await
    }

    async fn download(&mut self, bytes: usize) -> (u16, Vec<u8>) {
        self.send(&format!("GET /{bytes} HTTP/1.1\r\nhost: here\r\n\r\n")).await;
        self.answer().await
    }
}

fn bytes(random: &mut fastrand::Rng) -> Vec<u8> {
    let length = 1 << random.u32(4..18);
    let mut bytes = vec![0; random.usize(length..=2 * length)];
    random.fill(&mut bytes);
    bytes
}

/// Waits until nothing of the pool is in use.
async fn all_is_released(memory: &Memory) {
    let released = async {
        while memory.pool.stats().in_use > 0 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, released).await.expect("buffers are lost");
}

/// Raises the limit of open files: each client has two, and two tests at once more than the 1024 that are usual.
#[cfg(unix)]
fn allow_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
}

/// Each client uploads some times, and downloads.
async fn crowd(address: SocketAddr) {
    #[cfg(unix)]
    allow_open_files();
    let mut clients = JoinSet::new();
    for number in 0..CONNECTIONS {
        clients.spawn(async move {
            let mut client = Client::new(address).await;
            let mut random = fastrand::Rng::with_seed(number as u64);
            for round in 0..3 {
                let sent = bytes(&mut random);
                assert!(client.upload(&sent).await == (200, sent), "client {number}");
                if round == 1 {
                    let len = random.usize(0..200_000);
                    let (status, came) = client.download(len).await;
                    assert!(status == 200 && came.into_iter().eq((0..len).map(|at| (at % 251) as u8)));
                }
            }
        });
    }
    while let Some(ended) = clients.join_next().await {
        ended.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_clients_of_axum_share_a_budget() {
    let memory = memory(PATIENCE);
    crowd(start(router(memory.clone()))).await;
    all_is_released(&memory).await;
    assert!(memory.pool.stats().high_water_bytes <= BUDGET);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_clients_of_hyper_share_a_budget() {
    let memory = memory(PATIENCE);
    let (listener, address) = listen();
    tokio::spawn(serve(listener, service(memory.clone())));
    crowd(address).await;
    all_is_released(&memory).await;
    assert!(memory.pool.stats().high_water_bytes <= BUDGET);
}

#[tokio::test]
async fn an_upload_whose_length_is_not_announced() {
    let memory = memory(PATIENCE);
    let address = start(router(memory.clone()));
    let mut client = Client::new(address).await;
    let sent = bytes(&mut fastrand::Rng::with_seed(1)).repeat(3);
    assert!(client.upload_in_chunks(&sent).await == (200, sent));
    all_is_released(&memory).await;
}

#[tokio::test]
async fn too_large_is_413_and_busy_is_503() {
    let memory = memory(Duration::from_millis(10));
    let address = start(router(memory.clone()));
    let mut client = Client::new(address).await;
    let head = format!("POST / HTTP/1.1\r\nhost: here\r\ncontent-length: {}\r\n\r\n", LIMIT + 1);
    client.send(&head).await;
    assert_eq!(client.answer().await.0, 413);

    let held = memory.pool.acquire(BUDGET - (256 << 10)).unwrap();
    let mut client = Client::new(address).await;
    assert_eq!(client.upload(&vec![7; LIMIT]).await.0, 503);
    assert_eq!(memory.pool.stats().in_use, 1);
    drop(held);
    assert_eq!(Client::new(address).await.upload(&[7; 1000]).await, (200, vec![7; 1000]));
}

#[tokio::test]
async fn a_client_that_leaves_in_between_leaves_nothing_behind() {
    let memory = memory(PATIENCE);
    let address = start(router(memory.clone()));
    let mut uploading = Client::new(address).await;
    uploading.send("POST / HTTP/1.1\r\nhost: here\r\ncontent-length: 1000000\r\n\r\nfirst").await;
    let mut downloading = Client::new(address).await;
    downloading.send("GET /100000000 HTTP/1.1\r\nhost: here\r\n\r\n").await;
    let begun = async {
        while memory.pool.stats().in_use < 2 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, begun).await.expect("both hold a buffer");
    drop((uploading, downloading));
    all_is_released(&memory).await;
}

#[tokio::test]
async fn a_handler_that_is_cancelled_releases_its_upload() {
    let memory = memory(PATIENCE);
    let service = Router::new().route("/", post(async |_upload: Upload| pending::<()>().await));
    let address = start(service.with_state(memory.clone()));
    let mut client = Client::new(address).await;
    client.send("POST / HTTP/1.1\r\nhost: here\r\ncontent-length: 4\r\n\r\nfour").await;
    let begun = async {
        while memory.pool.stats().in_use == 0 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, begun).await.expect("the handler has it");
    drop(client);
    all_is_released(&memory).await;
}
