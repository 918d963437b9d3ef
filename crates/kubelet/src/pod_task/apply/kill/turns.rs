//! Who may get SIGTERM when.

use rubelet_pod_plan::plan::{Kill, Turn};
use tokio::sync::watch;

use super::ending::End;

/// How far the containers of one step have come.
pub(super) struct Turns {
    turns: Vec<Turn>,
    progress: watch::Sender<Vec<Progress>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    UnderWay,
    Ended,
    Failed,
}

impl Turns {
    pub(super) fn new(kills: &[Kill]) -> Self {
        Self {
            turns: kills.iter().map(|kill| kill.turn).collect(),
            progress: watch::Sender::new(vec![Progress::UnderWay; kills.len()]),
        }
    }

    /// Waits for the turn of one container; false if it does not come because another could not be
    /// stopped.
    pub(super) async fn come(&self, index: usize) -> bool {
        let turn = self.turns[index];
        let awaited: Vec<usize> = (0..self.turns.len())
            .filter(|other| turn.waits_for(self.turns[*other]))
            .collect();
        let come = |all: &Vec<Progress>| awaited.iter().all(|one| all[*one] == Progress::Ended);
        let failed = |all: &Vec<Progress>| awaited.iter().any(|one| all[*one] == Progress::Failed);
        let mut progress = self.progress.subscribe();
        match progress.wait_for(|all| come(all) || failed(all)).await {
            Ok(all) => come(&all),
            // The sender is in `self`.
            Err(_) => false,
        }
    }

    /// Notes how the end of one container went.
    pub(super) fn note(&self, index: usize, end: &End) {
        self.progress.send_modify(|all| {
            all[index] = match end {
                End::Ended => Progress::Ended,
                End::NotYet | End::Failed(_) => Progress::Failed,
            }
        });
    }
}
