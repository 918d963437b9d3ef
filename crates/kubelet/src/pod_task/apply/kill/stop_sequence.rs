//! The order in which the containers of one step get SIGTERM (KEP-753).

use rubelet_pod_plan::step::{Kill, KillOrder};
use tokio::sync::watch;

use super::container_stop::StopOutcome;

/// The stop order of the containers of one step, and the progress of each.
pub(super) struct StopSequence {
    orders: Vec<KillOrder>,
    progress: watch::Sender<Vec<Progress>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    UnderWay,
    Ended,
    Failed,
}

impl StopSequence {
    pub(super) fn new(kills: &[Kill]) -> Self {
        Self {
            orders: kills.iter().map(|kill| kill.order).collect(),
            progress: watch::Sender::new(vec![Progress::UnderWay; kills.len()]),
        }
    }

    /// Waits until all containers that stop before this one have stopped; false if one of them
    /// could not be stopped.
    pub(super) async fn wait_turn(&self, index: usize) -> bool {
        let order = self.orders[index];
        let awaited: Vec<usize> = (0..self.orders.len())
            .filter(|other| order.waits_for(self.orders[*other]))
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

    /// Notes the outcome of the stop of one container.
    pub(super) fn note(&self, index: usize, end: &StopOutcome) {
        self.progress.send_modify(|all| {
            all[index] = match end {
                StopOutcome::Stopped => Progress::Ended,
                StopOutcome::Deferred | StopOutcome::Failed(_) => Progress::Failed,
            }
        });
    }
}
