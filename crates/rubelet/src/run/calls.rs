//! Counts what is asked of the runtime.

use std::{sync::Arc, time::Duration};

use rubelet_cri::CriErrorKind;
use rubelet_cri_grpc::CallObserver;
use rubelet_kubelet::metrics::NodeMetrics;

/// Counts each call that ended.
pub(super) struct CountCalls(Arc<NodeMetrics>);

impl CountCalls {
    pub(super) fn new(metrics: Arc<NodeMetrics>) -> Self {
        Self(metrics)
    }
}

impl CallObserver for CountCalls {
    fn call_ended(&self, call: &'static str, took: Duration, outcome: Result<(), CriErrorKind>) {
        // What a runtime can not stream is listed instead, and counts as that list alone.
        let is_other_way = call.starts_with("Stream");
        if is_other_way && outcome == Err(CriErrorKind::Unimplemented) {
            return;
        }
        self.0.runtime.call_ended(call, took, outcome.is_ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_counts_once_whichever_way_it_is_made() {
        let metrics = NodeMetrics::new();
        let calls = CountCalls::new(Arc::clone(&metrics));
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
