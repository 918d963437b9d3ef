//! The lease.

use serde_json::json;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_lease_belongs_to_the_node_and_is_renewed_each_ten_seconds() {
    let model = Model::new();
    let _agent = Agent::ready(&model);
    millis(100).await;
    let lease = model.lease().unwrap();
    assert_eq!(lease["apiVersion"], "coordination.k8s.io/v1");
    assert_eq!(
        lease["metadata"]["ownerReferences"],
        json!([{ "apiVersion": "v1", "kind": "Node", "name": NAME, "uid": "uid-1" }])
    );
    let time = lease["spec"]["renewTime"].as_str().unwrap().to_owned();
    assert!(
        time.starts_with("2027-01-15T08:00:00.0") && time.len() == 27,
        "{time}"
    );
    assert_eq!(
        lease["spec"],
        json!({ "holderIdentity": NAME, "leaseDurationSeconds": 40, "renewTime": time })
    );
    model.calls();
    seconds(600).await;
    let renewals = model.count("replace lease");
    assert!(
        (57..=60).contains(&renewals),
        "{renewals} renewals in ten minutes"
    );
    assert_eq!(model.count("get lease") + model.count("create lease"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_somebody_else_wrote_or_deleted_is_kept_all_the_same() {
    let model = Model::new();
    let _agent = Agent::ready(&model);
    seconds(5).await;
    model.calls();
    model.touch_lease();
    let before = model.lease().unwrap();
    seconds(7).await;
    let after = model.lease().unwrap();
    assert_ne!(before["spec"]["renewTime"], after["spec"]["renewTime"]);
    assert_eq!(
        model.calls(),
        ["replace lease", "get lease", "replace lease"]
    );
}

#[tokio::test(start_paused = true)]
async fn requests_about_the_node_that_hang_do_not_delay_the_lease() {
    let model = Model::new();
    let agent = Agent::ready(&model);
    seconds(5).await;
    model.set_nodes_hang(true);
    agent.runtime_is_silent();
    model.calls();
    seconds(600).await;
    let renewals = model.count("replace lease");
    assert!(
        (57..=60).contains(&renewals),
        "{renewals} renewals in ten minutes"
    );
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_comes_back_gets_the_lease_within_seconds() {
    let model = Model::new();
    let _agent = Agent::ready(&model);
    seconds(5).await;
    model.set_away(true);
    seconds(300).await;
    model.set_away(false);
    model.calls();
    seconds(8).await;
    assert!(model.count("replace lease") >= 1);
}
