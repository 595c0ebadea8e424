//! Clients that know what each answer has to be.

use core::net::SocketAddr;
use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

use crate::wire::{self, ANSWER_BYTES, HEADER_BYTES, MAX_FRAME_BYTES};

/// The lengths of small frames.
const SMALL_BYTES: core::ops::RangeInclusive<usize> = 64..=1024;
/// As many clients have frames of their own; the others have those of the first ones.
const PLACES: usize = 1024;
/// From the frames of one client to those of the next.
const STRIDE: usize = 128;
/// From a client's frames to those that it wants back.
const WANTED_BACK: usize = STRIDE / 2;
/// A large frame is sent in this number of pieces.
const PIECES: u32 = 16;
/// What a slow reader reads at once, and the pause that it makes then.
const SLOW_BYTES: usize = 16 << 10;
const SLOW_PAUSE: Duration = Duration::from_millis(10);
/// A client that waits longer has lost its connection.
const PATIENCE: Duration = Duration::from_secs(60);

/// The bytes that all frames are cut from.
#[derive(Debug)]
pub struct Payload {
    bytes: Vec<u8>,
}

impl Payload {
    /// The same bytes each time.
    #[must_use]
    pub fn new() -> Arc<Self> {
        let mut random = fastrand::Rng::with_seed(18);
        let mut bytes = vec![0; PLACES * STRIDE + MAX_FRAME_BYTES];
        random.fill(&mut bytes);
        for place in bytes.chunks_mut(STRIDE) {
            place[0] &= !1;
            if let Some(first) = place.get_mut(WANTED_BACK) {
                *first |= 1;
            }
        }
        Arc::new(Self { bytes })
    }

    /// A client's frame of `length` bytes, up to [`MAX_FRAME_BYTES`].
    fn frame(&self, client: usize, length: usize, wanted_back: bool) -> &[u8] {
        let start = client % PLACES * STRIDE + if wanted_back { WANTED_BACK } else { 0 };
        &self.bytes[start..][..length]
    }
}

/// A connection, and whose it is.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    place: usize,
    turns: usize,
}

/// A large frame that was answered.
#[derive(Debug, Clone, Copy)]
pub struct Answered {
    /// The client's number.
    pub client: usize,
    /// From when it could have sent until it had the answer.
    pub wait: Duration,
}

impl Client {
    /// Sends a small frame in one piece and checks the answer.
    async fn ask(&mut self, frame: &[u8]) -> Result<()> {
        let mut whole = [0; HEADER_BYTES + *SMALL_BYTES.end()];
        whole[..HEADER_BYTES].copy_from_slice(&wire::header(frame.len())?);
        whole[HEADER_BYTES..][..frame.len()].copy_from_slice(frame);
        self.stream.write_all(&whole[..HEADER_BYTES + frame.len()]).await?;
        self.check_answer(frame).await
    }

    /// Sends a large frame, evenly over the time `pace`, and checks the answer.
    async fn ask_large(&mut self, frame: &[u8], pace: Duration) -> Result<()> {
        let start = tokio::time::Instant::now();
        self.stream.write_all(&wire::header(frame.len())?).await?;
        for (at, piece) in (0_u32..).zip(frame.chunks(frame.len().div_ceil(PIECES as usize).max(1))) {
            if !pace.is_zero() {
                tokio::time::sleep_until(start + pace * at / PIECES).await;
            }
            self.stream.write_all(piece).await?;
        }
        self.check_answer(frame).await
    }

    async fn check_answer(&mut self, frame: &[u8]) -> Result<()> {
        let mut answer = [0; ANSWER_BYTES];
        self.stream.read_exact(&mut answer).await?;
        ensure!(answer == wire::answer(frame), "client {}: a wrong answer: {answer:?}", self.place);
        Ok(())
    }

    /// Asks again and again with small frames until `end`; returns how often.
    async fn ask_small(&mut self, payload: &Payload, end: Instant) -> Result<u64> {
        let mut asked = 0;
        while Instant::now() < end {
            let range = SMALL_BYTES.end() - SMALL_BYTES.start() + 1;
            let length = SMALL_BYTES.start() + (self.place * 7919 + self.turns * 104_729) % range;
            self.turns += 1;
            self.ask(payload.frame(self.place, length, false)).await?;
            asked += 1;
        }
        Ok(asked)
    }

    /// Reads the frame that it wanted back, slowly.
    async fn read_slowly(&mut self, frame: &[u8]) -> Result<()> {
        let mut piece = vec![0; SLOW_BYTES];
        for expected in frame.chunks(SLOW_BYTES) {
            let piece = &mut piece[..expected.len()];
            self.stream.read_exact(piece).await?;
            ensure!(piece == expected, "client {}: another frame came back", self.place);
            tokio::time::sleep(SLOW_PAUSE).await;
        }
        Ok(())
    }
}

/// Connects as many clients. With `receive_buffer` the system keeps this number of bytes for one
/// that does not read.
///
/// # Errors
///
/// When one cannot connect.
pub async fn connect(to: SocketAddr, clients: usize, receive_buffer: Option<u32>) -> Result<Vec<Client>> {
    let mut connected = Vec::with_capacity(clients);
    for place in 0..clients {
        let socket = TcpSocket::new_v4()?;
        if let Some(bytes) = receive_buffer {
            socket.set_recv_buffer_size(bytes)?;
        }
        let stream =
            socket.connect(to).await.with_context(|| format!("client {place} cannot connect to {to}"))?;
        stream.set_nodelay(true)?;
        connected.push(Client { stream, place, turns: 0 });
    }
    Ok(connected)
}

/// Every client sends small frames, each when the last one was answered, for that long. Returns the
/// clients, and the number of frames.
///
/// # Errors
///
/// When an answer is wrong, or a connection fails.
pub async fn ask_small(
    clients: Vec<Client>,
    payload: &Arc<Payload>,
    time: Duration,
) -> Result<(Vec<Client>, u64)> {
    let end = Instant::now() + time;
    let mut tasks = JoinSet::new();
    for mut client in clients {
        let payload = Arc::clone(payload);
        tasks.spawn(async move {
            let asked = within_patience(time, client.ask_small(&payload, end)).await?;
            Ok::<_, anyhow::Error>((client, asked))
        });
    }
    let (mut clients, mut total) = (Vec::new(), 0);
    while let Some(ended) = tasks.join_next().await {
        let (client, asked) = ended??;
        clients.push(client);
        total += asked;
    }
    clients.sort_by_key(|client| client.place);
    Ok((clients, total))
}

/// A large frame from every client.
#[derive(Debug, Clone, Copy)]
pub struct Large {
    /// Its bytes.
    pub bytes: usize,
    /// The time over which the clients begin, one after the other.
    pub spread: Duration,
    /// The time that each of them takes to send it: a link is not as fast as memory.
    pub pace: Duration,
    /// As many clients, spread among the others, want their frame back and read slowly.
    pub slow: usize,
}

impl Large {
    /// Whether that client, one of `clients`, reads slowly.
    fn is_slow(&self, client: usize, clients: usize) -> bool {
        self.slow > 0 && client.is_multiple_of((clients / self.slow).max(1))
    }

    /// Has every client send its frame. Returns the clients, and the waits of those that do not
    /// read slowly.
    ///
    /// # Errors
    ///
    /// When an answer is wrong, or a connection fails.
    pub async fn ask(
        self,
        clients: Vec<Client>,
        payload: &Arc<Payload>,
    ) -> Result<(Vec<Client>, Vec<Answered>)> {
        let begin = Instant::now();
        let count = clients.len();
        let mut tasks = JoinSet::new();
        for mut client in clients {
            let payload = Arc::clone(payload);
            let share = client.place as f64 / count as f64;
            let slow = self.is_slow(client.place, count);
            let start = begin + self.spread.mul_f64(share);
            tasks.spawn(async move {
                tokio::time::sleep_until(start.into()).await;
                let frame = payload.frame(client.place, self.bytes, slow);
                within_patience(self.pace, client.ask_large(frame, self.pace)).await?;
                let answered = Answered { client: client.place, wait: start.elapsed() };
                if slow {
                    within_patience(Duration::ZERO, client.read_slowly(frame)).await?;
                }
                Ok::<_, anyhow::Error>((client, Some(answered).filter(|_| !slow)))
            });
        }
        let (mut clients, mut waits) = (Vec::new(), Vec::new());
        while let Some(ended) = tasks.join_next().await {
            let (client, answered) = ended??;
            clients.push(client);
            waits.extend(answered);
        }
        clients.sort_by_key(|client| client.place);
        waits.sort_by_key(|answered| answered.client);
        Ok((clients, waits))
    }
}

/// What `work` gives, if it ends soon after `time`.
async fn within_patience<T>(time: Duration, work: impl Future<Output = Result<T>>) -> Result<T> {
    let limit = time + PATIENCE;
    tokio::time::timeout(limit, work).await.with_context(|| format!("no answer within {limit:?}"))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_differ_and_say_what_they_want() {
        let payload = Payload::new();
        for client in [0, 1, 500, PLACES - 1] {
            assert!(!wire::is_wanted_back(payload.frame(client, 100, false)));
            assert!(wire::is_wanted_back(payload.frame(client, MAX_FRAME_BYTES, true)));
        }
        let sum = |client| wire::answer(payload.frame(client, 1000, false));
        assert_ne!(sum(0), sum(1));
        assert_eq!(sum(0), sum(PLACES));
    }

    #[test]
    fn slow_readers_are_spread() {
        let large = Large { bytes: 1, spread: Duration::ZERO, pace: Duration::ZERO, slow: 20 };
        assert_eq!((0..200).filter(|&client| large.is_slow(client, 200)).count(), 20);
        let none = Large { slow: 0, ..large };
        assert!(!(0..200).any(|client| none.is_slow(client, 200)));
    }
}
