//! Tests of `report`.

use super::*;

#[test]
fn tells_in_order_and_passes_the_console() {
    let (mut reports, barrier, reporter) = channel().unwrap();
    assert!(read_report(&mut reports).unwrap().is_none());
    reporter.warning("one");
    let console = rustix::fs::open(
        "/dev/null",
        rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )
    .unwrap();
    reporter.created(Some(&console)).unwrap();
    let report = read_report(&mut reports).unwrap();
    assert!(matches!(
        report,
        Some(ChildReport::Created { console: Some(_), warnings }) if warnings == ["one"]
    ));
    open_barrier(barrier);
    assert!(reporter.wait_at_barrier());
    drop(reporter);
    let report = read_report(&mut reports).unwrap();
    assert!(matches!(report, Some(ChildReport::Started)), "{report:?}");
}

#[test]
fn an_init_is_known_before_what_it_tells() {
    let (mut reports, barrier, reporter) = channel().unwrap();
    reports.expect_init();
    reporter.created(None).unwrap();
    assert!(read_report(&mut reports).unwrap().is_none());
    reporter.init(7, &barrier.pipe).unwrap();
    let report = read_report(&mut reports).unwrap();
    assert!(matches!(report, Some(ChildReport::Init { pid: 7, .. })));
    let report = read_report(&mut reports).unwrap();
    assert!(matches!(report, Some(ChildReport::Created { .. })));
}

#[test]
fn a_child_that_is_killed_is_no_success() {
    let (mut reports, barrier, reporter) = channel().unwrap();
    drop(reporter);
    let report = read_report(&mut reports).unwrap();
    assert!(matches!(report, Some(ChildReport::Failed(_))), "{report:?}");
    drop(barrier);

    let (mut reports, barrier, reporter) = channel().unwrap();
    reporter.created(None).unwrap();
    read_report(&mut reports).unwrap();
    drop(barrier);
    assert!(!reporter.wait_at_barrier());
    drop(reporter);
    let report = read_report(&mut reports).unwrap();
    assert!(
        matches!(report, Some(ChildReport::StartFailed(_))),
        "{report:?}"
    );
}
