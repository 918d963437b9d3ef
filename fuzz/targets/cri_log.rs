//! A container's log file, which the container's output makes up in good part.

#![no_main]

use std::cell::OnceCell;
use std::path::PathBuf;

use futures_util::StreamExt;
use libfuzzer_sys::fuzz_target;
use rubelet_logs::entry::parse_header;
use rubelet_logs::read::{ReadOptions, stream, tail_of};

thread_local! {
    static RUNTIME: OnceCell<tokio::runtime::Runtime> = const { OnceCell::new() };
}

/// Most bytes of a tail.
const TAIL: usize = 100;

fuzz_target!(|data: &[u8]| {
    let Some((choice, log)) = data.split_first() else {
        return;
    };
    for line in log.split_inclusive(|byte| *byte == b'\n') {
        let _ = parse_header(line);
    }
    let place = tempfile::tempdir().expect("a temporary directory can be made");
    let path = place.path().join("0.log");
    std::fs::write(&path, log).expect("a file can be made in it");
    RUNTIME.with(|runtime| {
        let runtime = runtime.get_or_init(|| {
            tokio::runtime::Builder::new_current_thread()
                .build()
                .expect("an async runtime can be made")
        });
        runtime.block_on(read(path, *choice, log.len()));
    });
});

async fn read(path: PathBuf, choice: u8, size: usize) {
    let limit = u64::from(choice >> 4) * 10;
    let options = ReadOptions {
        tail_lines: (choice & 1 != 0).then_some(u64::from(choice >> 5)),
        limit_bytes: (choice & 2 != 0).then_some(limit),
        timestamps: choice & 4 != 0,
        ..ReadOptions::default()
    };
    let whole = options.limit_bytes.is_none();
    let (_sender, ended) = tokio::sync::watch::channel(true);
    let mut read = 0;
    if let Ok(pieces) = stream(path.clone(), options, ended).await {
        let mut pieces = std::pin::pin!(pieces);
        while let Some(Ok(piece)) = pieces.next().await {
            read += piece.len();
        }
    }
    assert!(whole || read as u64 <= limit, "{read} bytes for {limit}");
    assert!(read <= 2 * size + 100, "{read} bytes out of {size}");
    if let Ok(text) = tail_of(path, TAIL, 5).await {
        // Each byte that is no text becomes a character of three bytes.
        assert!(text.len() <= 3 * TAIL, "{}", text.len());
    }
}
