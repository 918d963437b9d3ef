//! The tables that compare Rubelet with the kubelet of Kubernetes 1.36, row by row, and all events that it records. Tests of
//! other crates hold their code against these tables, and `docs/parity.md` is made from them. They never decide what the agent does: no product code uses them.
//!
//! ```
//! use rubelet_base::parity::ParityVerdict;
//! use rubelet_parity::{ENDPOINTS, event_text::find};
//!
//! let healthz = ENDPOINTS.iter().find(|row| row.name.contains("/healthz"));
//! assert_eq!(healthz.expect("it is served").verdict, ParityVerdict::Same);
//! assert!(find(false, "Started", "Container started").is_some());
//! ```

mod annotations;
mod conditions;
mod endpoints;
pub mod event_text;
mod events;
mod exits;
mod markdown;
mod metrics;
mod row;

pub use annotations::ANNOTATIONS;
pub use conditions::{CONTAINER_REASONS, NODE_CONDITIONS, POD_CONDITIONS, POD_REASONS};
pub use endpoints::ENDPOINTS;
pub(crate) use endpoints::SOCKETS;
pub(crate) use events::MISSING_EVENTS;
pub(crate) use exits::EXITS;
pub use markdown::parity_markdown;
pub use metrics::{MISSING_METRICS, SAME_METRICS};
pub use row::ParityRow;

#[cfg(test)]
mod tests {
    use rubelet_base::parity::ParityVerdict;

    use super::*;
    use crate::event_text::EVENTS;

    #[test]
    fn the_page_for_users_is_up_to_date() {
        assert!(
            parity_markdown() == include_str!("../../../docs/parity.md"),
            "run: cargo run -q -p rubelet-parity --example parity > docs/parity.md"
        );
    }

    #[test]
    fn what_is_not_the_same_says_why_and_stands_once() {
        let tables = [
            MISSING_EVENTS,
            POD_CONDITIONS,
            NODE_CONDITIONS,
            POD_REASONS,
            CONTAINER_REASONS,
            ENDPOINTS,
            SOCKETS,
            ANNOTATIONS,
            EXITS,
        ];
        let mut names: Vec<&str> = Vec::new();
        for row in tables.into_iter().flatten() {
            assert_eq!(
                row.why.is_empty(),
                row.verdict == ParityVerdict::Same,
                "{row:?}"
            );
            names.push(row.name);
        }
        names.extend(SAME_METRICS);
        names.extend(MISSING_METRICS.iter().flat_map(|(_, names)| names.iter()));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn an_event_that_is_raised_is_not_missing() {
        for row in MISSING_EVENTS {
            let (reasons, message) = match row.name.split_once(": ") {
                Some((reason, message)) => (reason, Some(message)),
                None => (row.name, None),
            };
            for reason in reasons.split(", ") {
                let raised = EVENTS.iter().any(|event| {
                    event.reason == reason && message.is_none_or(|message| event.message == message)
                });
                assert!(!raised, "{}", row.name);
            }
        }
    }
}
