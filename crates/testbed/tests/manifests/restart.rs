//! A restart of the agent while its manifests can't be used.

use rubelet_testbed::status::is_ready;

use crate::container_id;
use crate::outside::{self, PodText, TIMEOUT, states, truth};

#[test]
fn pods_of_invalid_manifests_outlive_agent_restarts() {
    let pods = ["halved", "emptied", "listed"].map(PodText::new);
    let (runtime, mut agent) = outside::with_pods(&pods);
    let truth = runtime.truth().unwrap();
    let before = truth::instances(&truth);
    for (pod, text) in pods.iter().zip(["{\"apiVersion\":", "", "kind: List\n"]) {
        std::fs::write(agent.manifest_dir().join(pod.file()), text).unwrap();
        states::wait_manifest(&agent, &pod.file(), "Bad");
    }
    let record = agent.root_dir().join("rubelet/held-manifests.json");
    agent
        .wait_for("what is held is on disk", TIMEOUT, |_| {
            let text = std::fs::read_to_string(&record).unwrap_or_default();
            let all = pods.iter().all(|pod| text.contains(&agent_name(pod)));
            Ok(all.then_some(()))
        })
        .unwrap();

    for round in 0..3 {
        if round == 0 {
            agent.terminate().unwrap();
        } else {
            agent.kill9().unwrap();
        }
        agent.start().unwrap();
        states::wait_all_ready(&agent, 3);
        for pod in &pods {
            states::wait_manifest(&agent, &pod.file(), "Bad");
        }
        assert_eq!(truth::instances(&truth), before, "round {round}");
    }

    // The valid text again is not a change.
    let id = container_id(&agent.pod("halved").unwrap().unwrap());
    agent
        .write_manifest("halved.yaml", &pods[0].yaml())
        .unwrap();
    states::wait_manifest(&agent, "halved.yaml", "Ok");
    let now = agent.pod("halved").unwrap().unwrap();
    assert!(is_ready(&now));
    assert_eq!(container_id(&now), id);
    // A removal also removes the held definition.
    agent.remove_manifest("emptied.yaml").unwrap();
    states::wait_gone(&agent, "emptied");
}

fn agent_name(pod: &PodText) -> String {
    format!("\"{}-testnode\"", pod.name())
}
