//! Ephemeral containers start once.

use rubelet_api::{container::EphemeralContainer, pod::RestartPolicy::*};

use super::build::*;

#[test]
fn an_ephemeral_container_starts_beside_the_others_and_never_again() {
    let mut pod = pod(Always, &["i"], &["a"]);
    pod.spec.ephemeral_containers = vec![EphemeralContainer {
        container: container("debug"),
        target: None,
    }];
    let rows: [(&str, &[&str], &str); 6] = [
        // It does not wait for init containers.
        (
            "i=run",
            &["start debug in s0"],
            "Pending i:Running a:PodInitializing debug:ContainerCreating",
        ),
        (
            "i=exit:0 a=run debug=created",
            &["start created debug0"],
            "Running i:Completed(0) a:Running debug:",
        ),
        (
            "i=exit:0 a=run debug=run",
            &[],
            "Running i:Completed(0) a:Running debug:Running",
        ),
        (
            "i=exit:0 a=run debug=exit:1",
            &[],
            "Running i:Completed(0) a:Running debug:Error(1)",
        ),
        (
            "i=exit:0 a=run debug=unknown",
            &[],
            "Running i:Completed(0) a:Running debug:ContainerStatusUnknown(137)",
        ),
        (
            "i=exit:0 a=exit:1 debug=run",
            &["start a #1 in s0"],
            "Running i:Completed(0) a:Error(1) debug:Running",
        ),
    ];
    for (records, steps, status) in rows {
        let (found, said) = Node::new().in_sandbox(&pod, records);
        assert_eq!(found, steps, "{records}");
        assert_eq!(said, status, "{records}");
    }
}

#[test]
fn an_ephemeral_container_does_not_keep_a_finished_pod_going() {
    let mut pod = pod(Never, &[], &["a"]);
    pod.spec.ephemeral_containers = vec![EphemeralContainer {
        container: container("debug"),
        target: None,
    }];
    let (steps, said) = Node::new().in_sandbox(&pod, "a=exit:0 debug=run");
    assert_eq!(steps, ["kill debug0", "stop s0"]);
    assert_eq!(said, "Succeeded a:Completed(0) debug:Running");
}
