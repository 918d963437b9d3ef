//! Health of the runtime as a whole.

use std::time::Duration;

use rubelet_base::duration::format_go;
use tokio::time::Instant;

/// Longest time without a successful list (kubelet: `relistThreshold`).
const NO_LIST: Duration = Duration::from_secs(180);
/// Longest time without a response to any call. Calls that hang for a few containers do not make
/// the runtime unhealthy, nor does a slow list.
const NO_ANSWER: Duration = Duration::from_secs(30);

/// Times of the runtime's last responses.
#[derive(Debug, Clone, Copy)]
pub(super) struct RuntimeActivity {
    /// Time of the first call of this process.
    pub(super) began: Instant,
    /// Time of the last complete list; `None` before the first.
    pub(super) listed: Option<Instant>,
    /// Time of the last response to any call, including errors that the runtime returned.
    pub(super) answered: Option<Instant>,
}

impl RuntimeActivity {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            began: now,
            listed: None,
            answered: None,
        }
    }

    /// The problem as the kubelet words it; `None` if the runtime is healthy.
    pub(super) fn problem(&self, now: Instant) -> Option<String> {
        let silent = now.duration_since(self.answered.unwrap_or(self.began));
        let unlisted = now.duration_since(self.listed.unwrap_or(self.began));
        if unlisted <= NO_LIST || silent < NO_ANSWER {
            return None;
        }
        let threshold = format_go(NO_LIST);
        Some(match self.listed {
            Some(_) => {
                // Milliseconds are precise enough.
                let millis = u64::try_from(unlisted.as_millis()).unwrap_or(u64::MAX);
                let ago = format_go(Duration::from_millis(millis));
                format!(
                    "PLEG is not healthy: pleg was last seen active {ago} ago; threshold is {threshold}"
                )
            }
            None => "PLEG is not healthy: pleg has yet to be successful".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_runtime_that_answers_nothing_is_unhealthy() {
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let activity = |listed: Option<u64>, answered: Option<u64>| RuntimeActivity {
            began,
            listed: listed.map(at),
            answered: answered.map(at),
        };
        for (listed, answered, now, problem) in [
            (None, None, 180, None),
            (None, None, 181, Some("pleg has yet to be successful")),
            (Some(10), Some(10), 190, None),
            (
                Some(10),
                Some(10),
                200,
                Some("pleg was last seen active 3m10s ago; threshold is 3m0s"),
            ),
            // Lists fail or are slow, and others are answered.
            (Some(10), Some(390), 400, None),
            (
                Some(10),
                Some(390),
                420,
                Some("pleg was last seen active 6m50s ago; threshold is 3m0s"),
            ),
        ] {
            let found = activity(listed, answered).problem(at(now));
            let problem = problem.map(|text| format!("PLEG is not healthy: {text}"));
            assert_eq!(found, problem, "{listed:?} {answered:?} {now}");
        }
    }
}
