//! Queries on calls.

use std::{collections::BTreeMap, time::Duration};

use super::{CallOutcome, Entry, EntryKind, Oracle};
use crate::Subject;

/// One call from its beginning to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRecord {
    /// The RPC, such as `StartContainer`.
    pub call: &'static str,
    /// Its subject, as far as the runtime knew it when the call began.
    pub subject: Subject,
    /// Its arrival, since the model started.
    pub began: Duration,
    /// Its end and outcome; `None` while it is in progress.
    pub ended: Option<(Duration, CallOutcome)>,
}

impl Oracle {
    /// All calls, in the order in which they began.
    #[must_use]
    pub fn calls(&self) -> Vec<CallRecord> {
        self.calls_since(0)
    }

    /// The calls that began after an earlier [`mark`](Oracle::mark), in that order.
    #[must_use]
    pub fn calls_since(&self, mark: usize) -> Vec<CallRecord> {
        let mut calls = BTreeMap::new();
        for Entry { at, what } in self.entries().iter().skip(mark) {
            match what {
                EntryKind::CallBegan {
                    number,
                    call,
                    subject,
                } => {
                    let record = CallRecord {
                        call,
                        subject: subject.clone(),
                        began: *at,
                        ended: None,
                    };
                    calls.insert(*number, record);
                }
                EntryKind::CallEnded {
                    number, outcome, ..
                } => {
                    if let Some(record) = calls.get_mut(number) {
                        record.ended = Some((*at, outcome.clone()));
                    }
                }
                _ => {}
            }
        }
        calls.into_values().collect()
    }

    /// Number of calls of one RPC about a subject.
    #[must_use]
    pub fn count(&self, call: &str, subject: &Subject) -> usize {
        crate::fault::known(call);
        let matching =
            |record: &&CallRecord| record.call == call && subject.matches(&record.subject);
        self.calls().iter().filter(matching).count()
    }

    /// Number of calls of each RPC.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for record in self.calls() {
            *counts.entry(record.call).or_default() += 1;
        }
        counts
    }
}
