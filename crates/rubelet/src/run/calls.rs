//! Counts calls of the runtime, and reports late results to PLEG.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use rubelet_cri::{ChangedObject, CriErrorKind};
use rubelet_cri_grpc::CallObserver;
use rubelet_node_state::metrics::NodeMetrics;
use rubelet_pleg::PlegHandle;
use tokio::sync::watch;

/// Observes the end of each call.
pub(super) struct CriCallObserver {
    metrics: Arc<NodeMetrics>,
    pleg: OnceLock<PlegHandle>,
    images: watch::Sender<u64>,
}

impl CriCallObserver {
    pub(super) fn new(metrics: Arc<NodeMetrics>) -> Self {
        let pleg = OnceLock::new();
        let images = watch::Sender::new(0);
        Self {
            metrics,
            pleg,
            images,
        }
    }

    /// Counts the calls that changed the runtime's images.
    pub(super) fn image_changes(&self) -> watch::Receiver<u64> {
        self.images.subscribe()
    }

    /// Reports late results to this PLEG from now on; only the first one counts.
    pub(super) fn set_pleg(&self, pleg: PlegHandle) {
        // A node has only one PLEG.
        let _ = self.pleg.set(pleg);
    }
}

impl CallObserver for CriCallObserver {
    fn call_ended(&self, call: &'static str, took: Duration, outcome: Result<(), CriErrorKind>) {
        // A list that a runtime can't stream is requested again as a unary call, and counts only as
        // that.
        let is_other_way = call.starts_with("Stream");
        if is_other_way && outcome == Err(CriErrorKind::Unimplemented) {
            return;
        }
        if outcome.is_ok() && matches!(call, "PullImage" | "RemoveImage") {
            self.images
                .send_modify(|count| *count = count.wrapping_add(1));
        }
        self.metrics.runtime.call_ended(call, took, outcome.is_ok());
    }

    fn answered_late(&self, _: &'static str, changed: &ChangedObject, _: Result<(), CriErrorKind>) {
        if let Some(pleg) = self.pleg.get() {
            pleg.answered_late(changed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pulls_and_removals_tell_that_images_changed() {
        let calls = CriCallObserver::new(NodeMetrics::new());
        let mut changes = calls.image_changes();
        let took = Duration::from_millis(1);
        for (call, outcome, changed) in [
            ("PullImage", Ok(()), true),
            ("RemoveImage", Ok(()), true),
            ("PullImage", Err(CriErrorKind::NotFound), false),
            ("ListImages", Ok(()), false),
        ] {
            calls.call_ended(call, took, outcome);
            assert_eq!(changes.has_changed().unwrap(), changed, "{call}");
            changes.mark_unchanged();
        }
    }

    #[test]
    fn a_list_counts_once_whichever_way_it_is_made() {
        let metrics = NodeMetrics::new();
        let calls = CriCallObserver::new(Arc::clone(&metrics));
        let took = Duration::from_millis(1);
        calls.call_ended("StreamContainers", took, Err(CriErrorKind::Unimplemented));
        calls.call_ended("ListContainers", took, Ok(()));
        calls.call_ended("StreamContainers", took, Ok(()));
        calls.call_ended("StreamContainers", took, Err(CriErrorKind::Unavailable));
        let text = metrics.render();
        let lists = "{operation_type=\"list_containers\"}";
        for (name, count) in [("total", 3), ("errors_total", 1)] {
            let line = format!("kubelet_runtime_operations_{name}{lists} {count}\n");
            assert!(text.contains(&line), "{line}{text}");
        }
    }
}
