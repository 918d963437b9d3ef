//! Tests of `body`.

use super::*;

fn pace(idle: u64, progress: u64) -> DownloadPace {
    DownloadPace::new(&Limits {
        idle: Duration::from_secs(idle),
        progress: Duration::from_secs(progress),
        ..Limits::default()
    })
}

#[test]
fn a_server_that_sends_a_byte_now_and_then_is_not_waited_for_for_ever() {
    let mut pace = pace(60, 300);
    for _ in 0..5 {
        assert!(pace.patience() > Duration::from_secs(50));
        pace.note(Duration::from_secs(50), 1);
    }
    assert_eq!(pace.patience(), Duration::from_secs(50));
    pace.note(Duration::from_secs(50), 1);
    assert_eq!(pace.patience(), Duration::ZERO);
    assert_eq!(
        pace.timeout_message("r.test"),
        "download from r.test is too slow: 6 bytes in 300 s"
    );
}

#[test]
fn a_slow_download_continues_while_data_arrives() {
    let mut pace = pace(60, 300);
    for _ in 0..1000 {
        assert_eq!(pace.patience(), Duration::from_secs(60));
        pace.note(Duration::from_secs(59), 20_000);
        pace.note(Duration::from_secs(59), 20_000);
        pace.note(Duration::from_secs(59), 20_000);
        pace.note(Duration::from_secs(59), 20_000);
    }
    let timeout_message = pace.timeout_message("r.test");
    assert_eq!(timeout_message, "download from r.test stalled for 60 s");
}

#[test]
fn without_a_time_for_progress_only_standstill_counts() {
    let mut pace = pace(60, 0);
    pace.note(Duration::from_secs(100_000), 1);
    assert_eq!(pace.patience(), Duration::from_secs(60));
}
