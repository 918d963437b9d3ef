//! Tests of `subject`.

use super::*;

#[test]
fn the_pod_of_a_created_container_is_known() {
    let mut known = KnownPods::default();
    let request = v1::CreateContainerRequest {
        pod_sandbox_id: "sandbox".into(),
        sandbox_config: Some(v1::PodSandboxConfig {
            metadata: Some(v1::PodSandboxMetadata {
                name: "web".into(),
                uid: "u".into(),
                namespace: "default".into(),
                attempt: 0,
            }),
            ..Default::default()
        }),
        ..Default::default()
    };
    let subject = known.of_request("CreateContainer", &request.encode_to_vec());
    assert_eq!(subject.pods, ["u", "web", "default/web"]);
    assert_eq!(subject.ids, ["sandbox"]);
    let answer = v1::CreateContainerResponse {
        container_id: "c1".into(),
    };
    known.learn_created("CreateContainer", &subject, &answer.encode_to_vec());
    let start = v1::StartContainerRequest {
        container_id: "c1".into(),
    };
    let started = known.of_request("StartContainer", &start.encode_to_vec());
    assert_eq!(started.shown(), "id=c1 pod=default/web");
}

#[test]
fn known_pods_are_bounded_and_invalid_messages_ignored() {
    let mut known = KnownPods::default();
    for number in 0..MAX_KNOWN + 10 {
        known.add(&number.to_string(), vec!["u".into()]);
    }
    assert_eq!(known.pods.len(), MAX_KNOWN);
    assert!(known.pod("0").is_empty() && !known.pod("10").is_empty());
    assert_eq!(known.of_event(&[255, 255]), Subject::default());
    assert_eq!(
        known.of_request("ListContainers", &[255]),
        Subject::default()
    );
    known.learn_list("ListContainers", &[255]);
}
