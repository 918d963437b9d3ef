//! The terms of the pages that compare Rubelet with the kubelet of Kubernetes 1.36, row by row.

mod annotations;
mod conditions;
mod endpoints;
mod events;
mod exits;
mod markdown;
mod metrics;
mod row;

pub use annotations::ANNOTATIONS;
pub use conditions::{CONTAINER_REASONS, NODE_CONDITIONS, POD_CONDITIONS, POD_REASONS};
pub use endpoints::{ENDPOINTS, SOCKETS};
pub use events::MISSING_EVENTS;
pub use exits::EXITS;
pub use markdown::parity_markdown;
pub use metrics::{MISSING_METRICS, SAME_METRICS};
pub use row::ParityRow;

/// How a feature of the kubelet compares here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParityVerdict {
    /// It works as in the kubelet, which may do nothing either.
    Same,
    /// It does the same, and more or more safely; the reason is given.
    Better,
    /// It deliberately differs; the reason is given.
    Differs,
    /// It is missing, completely or in part, and Rubelet reports that at the start, or where it is
    /// used.
    NotYet,
}

impl ParityVerdict {
    /// Every verdict, in the order of tables.
    pub const ALL: [Self; 4] = [Self::Same, Self::Better, Self::Differs, Self::NotYet];

    /// The word for tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Better => "better",
            Self::Differs => "differs",
            Self::NotYet => "not yet",
        }
    }
}

/// The count of each verdict in a table: `same 3, better 1, differs 0, not yet 2`.
#[must_use]
pub fn count_verdicts(verdicts: impl IntoIterator<Item = ParityVerdict>) -> String {
    let mut counts = ParityVerdict::ALL.map(|verdict| (verdict, 0));
    for found in verdicts {
        for (verdict, count) in &mut counts {
            *count += u32::from(*verdict == found);
        }
    }
    let words = counts.map(|(verdict, count)| format!("{} {count}", verdict.name()));
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_text::EVENTS;

    #[test]
    fn the_page_for_users_is_up_to_date() {
        assert!(
            parity_markdown() == include_str!("../../../docs/parity.md"),
            "run: cargo run -q -p rubelet-base --example parity > docs/parity.md"
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

    #[test]
    fn verdicts_are_counted_in_the_order_of_tables() {
        let found = [
            ParityVerdict::NotYet,
            ParityVerdict::Same,
            ParityVerdict::NotYet,
        ];
        assert_eq!(
            count_verdicts(found),
            "same 1, better 0, differs 0, not yet 2"
        );
    }
}
