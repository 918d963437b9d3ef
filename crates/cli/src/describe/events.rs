//! The events of a pod, oldest first.

use jiff::Timestamp;
use rubelet_server::table::{age, event_times};
use serde_json::Value;

use super::{json::string, text::Text};

/// Describes the events.
pub(super) fn describe(text: &mut Text, events: &[Value], now: Timestamp) {
    if events.is_empty() {
        text.field(0, "Events", "<none>");
        return;
    }
    let mut events: Vec<&Value> = events.iter().collect();
    events.sort_by_key(|event| event_times(event).last);
    text.line(0, "Events:");
    text.line(1, "Type\tReason\tAge\tFrom\tMessage");
    text.line(1, "----\t------\t----\t----\t-------");
    for event in events {
        let times = event_times(event);
        let last = age::since(times.last, now);
        let age = match times.count {
            1 => last,
            count => format!("{last} (x{count} over {})", age::since(times.first, now)),
        };
        let from = match string(event, "/source/component") {
            "" => string(event, "/reportingComponent"),
            component => component,
        };
        let message = string(event, "/message").trim().replace(['\n', '\t'], " ");
        let message = match string(event, "/involvedObject/fieldPath") {
            "" => message,
            path => format!("{path}: {message}"),
        };
        let (kind, reason) = (string(event, "/type"), string(event, "/reason"));
        text.line(1, format!("{kind}\t{reason}\t{age}\t{from}\t{message}"));
    }
}
