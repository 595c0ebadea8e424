//! The whole command with a few requests over one allocator.
#![cfg(target_os = "linux")]
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a program of the standard library's: nothing here is built without it"
)]

use std::path::Path;

use bufserve::plan::Results;
use bufserve::stock::Stock;
use bufserve::work::{Engine, Work};

#[test]
fn a_tiny_run_has_every_figure() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("serve-report");
    let files = ["report.md", "index.html", "serve.svg"];
    let program = env!("CARGO_BIN_EXE_bufserve");
    let results: Results =
        buftrials::results::of_tiny_run(program, &["--allocator", "glibc,bufalloc"], &out, &files);
    for work in Work::all() {
        let cells = results.cells(work);
        assert!(cells.len() >= 2, "{work:?}");
        let is_stock = matches!(work, Work::Stock(_));
        for cell in cells {
            let run = results.of(cell).next().unwrap();
            assert!(run.before > 0 && run.peak >= run.before && run.used.faults > 0, "{cell:?}: {run:?}");
            assert_eq!(run.closed > 0, is_stock, "{cell:?}: {run:?}");
            assert_eq!(run.held > 0, matches!(work, Work::Burst { survivors: true, .. }), "{cell:?}");
        }
    }
    // All of a burst is there at once, and a budget bounds what is.
    for (cell, run) in &results.runs {
        match cell.work {
            Work::Burst { .. } => assert!(run.peak() > 7.0 * 1048576.0, "{cell:?}: {run:?}"),
            Work::Service if cell.engine != Engine::Codec => {
                assert!(run.asked > 8 << 20 && run.peak() < 256.0 * 1048576.0, "{cell:?}: {run:?}");
            }
            Work::Stock(Stock::Requests) => assert_eq!(run.messages, 4000, "{cell:?}: {run:?}"),
            Work::Stock(Stock::Messages) => assert_eq!(run.messages, 4, "{cell:?}: {run:?}"),
            Work::Stock(_) => assert_eq!(run.asked, 4 * (16 << 20), "{cell:?}: {run:?}"),
            _ => {}
        }
    }
}

/// Clients see what a server answers wrongly: here one whose buffers come from where there are none.
#[test]
fn a_wrong_answer_fails() {
    use bufserve::clients;
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answered = |answer: &'static [u8]| {
        runtime.block_on(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let streams = clients::connect(listener.local_addr().unwrap(), 1, None).await.unwrap();
            let mut socket = listener.accept().await.unwrap().0;
            socket.write_all(answer).await.unwrap();
            drop(socket.shutdown().await);
            let asked = tokio::spawn(clients::ask(streams, vec![4]));
            format!("{:#}", asked.await.unwrap().unwrap_err())
        })
    };
    let error = answered(b"HTTP/1.1 200 OK\r\nchecksum: 1\r\ncontent-length: 4\r\n\r\nabcd");
    assert!(error.contains("a wrong answer"), "{error}");
    let error = answered(b"HTTP/1.1 500 no\r\n\r\n");
    assert!(error.contains("a wrong answer"), "{error}");
}
