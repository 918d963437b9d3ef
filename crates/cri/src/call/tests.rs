//! Tests of `call`.

use super::*;

fn stop(timeout: i64) -> v1::StopContainerRequest {
    v1::StopContainerRequest {
        timeout,
        ..Default::default()
    }
}

fn exec(timeout: i64) -> v1::ExecSyncRequest {
    v1::ExecSyncRequest {
        timeout,
        ..Default::default()
    }
}

#[test]
fn a_call_that_waits_by_design_gets_that_time_on_top() {
    let allowed = Timeouts::default();
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    assert_eq!(
        v1::VersionRequest::default().deadline(&allowed),
        seconds(120)
    );
    assert_eq!(v1::StatusRequest::default().deadline(&allowed), seconds(30));
    let short = Timeouts {
        request: Duration::from_secs(5),
    };
    let status = v1::ContainerStatusRequest::default();
    assert_eq!(status.deadline(&allowed), seconds(10));
    assert_eq!(status.deadline(&short), seconds(5));
    assert_eq!(
        v1::RunPodSandboxRequest::default().deadline(&allowed),
        seconds(240)
    );
    assert_eq!(stop(30).deadline(&allowed), seconds(150));
    assert_eq!(stop(-1).deadline(&allowed), seconds(120));
    assert_eq!(exec(5).deadline(&allowed), seconds(125));
    assert_eq!(exec(0).deadline(&allowed), None);
    assert_eq!(v1::PullImageRequest::default().deadline(&allowed), None);
}

#[test]
fn a_call_that_changes_something_names_it_and_others_can_be_canceled() {
    let metadata = v1::PodSandboxMetadata {
        uid: "u1".to_owned(),
        ..Default::default()
    };
    let run = v1::RunPodSandboxRequest {
        config: Some(v1::PodSandboxConfig {
            metadata: Some(metadata),
            ..Default::default()
        }),
        ..Default::default()
    };
    assert_eq!(run.changes(), Some(ChangedObject::Pod("u1".to_owned())));
    let create = v1::CreateContainerRequest {
        pod_sandbox_id: "s1".to_owned(),
        ..Default::default()
    };
    assert_eq!(
        create.changes(),
        Some(ChangedObject::Sandbox("s1".to_owned()))
    );
    let start = v1::StartContainerRequest {
        container_id: "c1".to_owned(),
    };
    let container = Some(ChangedObject::Container("c1".to_owned()));
    assert_eq!(start.changes(), container);
    assert_eq!(v1::PullImageRequest::default().changes(), None);
    assert_eq!(v1::ContainerStatusRequest::default().changes(), None);
    assert_eq!(exec(5).changes(), None);
}
