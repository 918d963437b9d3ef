//! Tests of `events`.

use async_trait::async_trait;
use rubelet_cri::{CriError, CriErrorKind, v1::ContainerEventType};

use super::*;

/// One sandbox with one container.
struct OnePod;

#[async_trait]
impl RuntimeService for OnePod {
    async fn pod_sandbox_status(
        &self,
        request: v1::PodSandboxStatusRequest,
    ) -> CriResult<v1::PodSandboxStatusResponse> {
        let id = request.pod_sandbox_id;
        if id != "s1" {
            let kind = CriErrorKind::NotFound;
            return Err(CriError::new("PodSandboxStatus", kind, "it is gone"));
        }
        let status = v1::PodSandboxStatus {
            id,
            metadata: Some(v1::PodSandboxMetadata {
                name: "web".into(),
                uid: "u1".into(),
                namespace: "default".into(),
                attempt: 0,
            }),
            ..Default::default()
        };
        Ok(v1::PodSandboxStatusResponse {
            status: Some(status),
            containers_statuses: vec![v1::ContainerStatus {
                id: "c1".into(),
                ..Default::default()
            }],
            ..Default::default()
        })
    }
}

async fn response(sandbox: &str) -> v1::ContainerEventResponse {
    let event = ContainerEvent {
        container: "c1".into(),
        kind: ContainerEventType::ContainerStoppedEvent,
        created_at: 7,
        sandbox: Some(sandbox.into()),
        pod_uid: Some("u1".into()),
        sequence: None,
    };
    with_statuses(&OnePod, event).await
}

#[tokio::test]
async fn an_event_carries_the_state_of_the_whole_pod() {
    let event = response("s1").await;
    assert_eq!((&*event.container_id, event.created_at), ("c1", 7));
    let sandbox = event.pod_sandbox_status.unwrap();
    assert_eq!(sandbox.metadata.unwrap().name, "web");
    let ids: Vec<_> = event
        .containers_statuses
        .iter()
        .map(|one| &one.id)
        .collect();
    assert_eq!(ids, ["c1"]);
}

#[tokio::test]
async fn an_event_of_a_removed_pod_names_it_and_shows_it_stopped() {
    let event = response("s2").await;
    let sandbox = event.pod_sandbox_status.unwrap();
    assert_eq!(sandbox.state(), v1::PodSandboxState::SandboxNotready);
    assert_eq!(
        (&*sandbox.id, &*sandbox.metadata.unwrap().uid),
        ("s2", "u1")
    );
    assert!(event.containers_statuses.is_empty());
}
