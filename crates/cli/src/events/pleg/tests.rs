//! Tests of `pleg`.

use serde_json::json;

use super::*;

fn event(number: u32, pod: &str, sync: Option<f64>) -> Value {
    json!({
        "metadata": { "name": format!("{number:012}"), "namespace": "default" },
        "time": format!("2026-03-01T12:00:{number:02}.000000Z"),
        "pod": { "name": pod, "uid": pod },
        "container": "main",
        "id": "c0ffee",
        "type": "ContainerDied",
        "cause": "event STOPPED",
        "afterChangeSeconds": 0.004,
        "toSyncSeconds": sync,
    })
}

/// What a reader sees of these calls: number of the second, pod and sync latency.
fn shown(acts: impl Fn(&mut PendingEvents, &mut Terminal<'_>)) -> Vec<String> {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut terminal = Terminal::new(&mut out, &mut err, false);
    let mut held = PendingEvents::new(Printer::new(Resource::LifecycleEvents, None, false, false));
    acts(&mut held, &mut terminal);
    let text = String::from_utf8(out).unwrap();
    let row = |line: &str| {
        let cells: Vec<&str> = line.split_whitespace().collect();
        format!(
            "{} {} {}",
            &cells[0][17..19],
            cells[1],
            cells[cells.len() - 1]
        )
    };
    text.lines().map(row).collect()
}

#[tokio::test(start_paused = true)]
async fn each_event_is_printed_once_and_complete() {
    let rows = shown(|held, terminal| {
        held.changed(&event(1, "web", None), terminal).unwrap();
        held.changed(&event(2, "db", None), terminal).unwrap();
        held.changed(&event(2, "db", Some(0.5)), terminal).unwrap();
        held.changed(&event(1, "web", Some(0.002)), terminal)
            .unwrap();
        held.end(terminal).unwrap();
    });
    assert_eq!(rows, ["02 db 500ms", "01 web 2.0ms"]);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_a_later_one_superseded_stays_open() {
    let rows = shown(|held, terminal| {
        held.changed(&event(1, "web", None), terminal).unwrap();
        held.changed(&event(2, "db", None), terminal).unwrap();
        held.changed(&event(3, "web", Some(0.002)), terminal)
            .unwrap();
        // Too late: it was printed.
        held.changed(&event(1, "web", Some(0.5)), terminal).unwrap();
        held.end(terminal).unwrap();
    });
    assert_eq!(rows, ["01 web -", "03 web 2.0ms", "02 db -"]);
}

#[tokio::test(start_paused = true)]
async fn an_event_waits_for_some_seconds_only_or_until_it_is_gone() {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut terminal = Terminal::new(&mut out, &mut err, false);
    let printer = Printer::new(Resource::LifecycleEvents, None, false, false);
    let mut held = PendingEvents::new(printer);
    held.changed(&event(1, "web", None), &mut terminal).unwrap();
    held.changed(&event(2, "db", None), &mut terminal).unwrap();
    assert_eq!(held.due(), Some(Instant::now() + PATIENCE));
    held.gone(&event(2, "db", None), &mut terminal).unwrap();
    held.show_due(&mut terminal).unwrap();
    tokio::time::advance(PATIENCE).await;
    held.show_due(&mut terminal).unwrap();
    assert_eq!(held.due(), None);
    let text = String::from_utf8(out).unwrap();
    let pods: Vec<_> = text
        .split_whitespace()
        .filter(|w| ["web", "db"].contains(w))
        .collect();
    assert_eq!(pods, ["db", "web"]);
}
