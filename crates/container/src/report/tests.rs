//! Tests of `report`.

use super::*;

#[test]
fn tells_in_order_and_passes_the_console() {
    let (mut reports, gate, reporter) = channel().unwrap();
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
        Some(Report::Created { console: Some(_), warnings }) if warnings == ["one"]
    ));
    open_gate(gate);
    assert!(reporter.pass_gate());
    drop(reporter);
    let report = read_report(&mut reports).unwrap();
    assert!(matches!(report, Some(Report::Started)), "{report:?}");
}

#[test]
fn an_init_is_known_before_what_it_tells() {
    let (mut reports, gate, reporter) = channel().unwrap();
    reports.expect_init();
    reporter.created(None).unwrap();
    assert!(read_report(&mut reports).unwrap().is_none());
    reporter.init(7, &gate.pipe).unwrap();
    let report = read_report(&mut reports).unwrap();
    assert!(matches!(report, Some(Report::Init { pid: 7, .. })));
    let report = read_report(&mut reports).unwrap();
    assert!(matches!(report, Some(Report::Created { .. })));
}

#[test]
fn a_child_that_is_killed_is_no_success() {
    let (mut reports, gate, reporter) = channel().unwrap();
    drop(reporter);
    let report = read_report(&mut reports).unwrap();
    assert!(matches!(report, Some(Report::Failed(_))), "{report:?}");
    drop(gate);

    let (mut reports, gate, reporter) = channel().unwrap();
    reporter.created(None).unwrap();
    read_report(&mut reports).unwrap();
    drop(gate);
    assert!(!reporter.pass_gate());
    drop(reporter);
    let report = read_report(&mut reports).unwrap();
    assert!(matches!(report, Some(Report::StartFailed(_))), "{report:?}");
}
