//! The pods that have running containers.

use rubelet_node_state::pod_board::{PodBoard, PodEntry};
use rubelet_server::RunningPod;

/// All of them, ordered by namespace and name.
pub(super) fn pods(board: &PodBoard) -> Vec<RunningPod> {
    let rows = board.list().into_iter();
    let mut pods: Vec<_> = rows.filter_map(|(_, _, entry)| running(&entry)).collect();
    pods.sort_unstable_by(|one, other| {
        (&one.namespace, &one.name, &one.uid).cmp(&(&other.namespace, &other.name, &other.uid))
    });
    pods
}

fn running(entry: &PodEntry) -> Option<RunningPod> {
    let containers: Vec<_> = entry
        .status
        .running_containers()
        .map(|status| (status.name.to_string(), status.image_id.to_string()))
        .collect();
    (!containers.is_empty()).then(|| RunningPod {
        namespace: entry.pod.name.namespace.to_string(),
        name: entry.pod.name.name.to_string(),
        uid: entry.pod.uid.as_str().to_owned(),
        containers,
    })
}
