//! The size limit of the termination messages in a pod's status (kubelet: the status manager's
//! `normalizeStatus`).

use rubelet_api::status::{ContainerState, ContainerStatus, Terminated};

/// Maximum size of all termination messages of one pod.
const MAX_POD_BYTES: usize = 12 * 1024;

/// Truncates each message to an equal part of the pod's limit.
pub(super) fn limit(lists: &mut [Vec<ContainerStatus>]) {
    let count: usize = lists.iter().map(Vec::len).sum();
    let limit = MAX_POD_BYTES / count.max(1);
    for status in lists.iter_mut().flatten() {
        if let ContainerState::Terminated(end) = &mut status.state {
            truncate(end, limit);
        }
        if let Some(end) = &mut status.last_state {
            truncate(end, limit);
        }
    }
}

fn truncate(end: &mut Terminated, limit: usize) {
    if end.message.len() > limit {
        end.message = end.message[..end.message.floor_char_boundary(limit)].into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(message: &str) -> ContainerStatus {
        let end = Terminated {
            exit_code: 1,
            reason: "Error".into(),
            message: message.into(),
            started_at: None,
            finished_at: None,
            container_id: "id".into(),
        };
        ContainerStatus {
            name: "a".into(),
            image: "".into(),
            image_id: "".into(),
            container_id: "id".into(),
            ready: false,
            started: false,
            restart_count: 0,
            state: ContainerState::Terminated(end.clone()),
            last_state: Some(end),
            user: None,
            recursive_read_only: Vec::new(),
        }
    }

    #[test]
    fn each_container_has_an_equal_part_of_what_the_pod_may_say() {
        let long = "é".repeat(2048);
        for (count, kept) in [(1, 4096), (3, 4096), (4, 3072), (5, 2456)] {
            let regular = (1..count).map(|_| ended(&long)).collect();
            let mut all = [vec![ended(&long)], regular];
            limit(&mut all);
            for status in all.iter().flatten() {
                let ContainerState::Terminated(end) = &status.state else {
                    panic!("{status:?}");
                };
                assert_eq!(end.message.len(), kept, "one of {count}");
                assert_eq!(status.last_state.as_ref(), Some(end), "one of {count}");
            }
        }
    }
}
