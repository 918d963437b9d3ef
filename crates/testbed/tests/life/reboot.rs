//! A power loss: agent, runtime and all containers end at once.

use anyhow::Result;
use rubelet_testbed::Node;
use rubelet_testbed::manifest::{shell, with};
use rubelet_testbed::runtime::Kind;
use rubelet_testbed::status::{ended, ended_before, restarts};
use serde_json::json;

use crate::notes::{Notes, note, noting, sidecar};

#[test]
fn after_a_reboot_pods_start_with_their_init_containers() -> Result<()> {
    let mut node = Node::start()?;
    let keeps = node.runtime().kind() != Kind::Crio;
    if !rubelet_needs::applies(keeps, "CRI-O removes all containers after a reboot") {
        return Ok(());
    }
    let policies = ["Always", "OnFailure", "Never"];
    let name_of = str::to_lowercase;
    let mut notes = Vec::new();
    for policy in policies {
        let name = name_of(policy);
        let own = Notes::new(&node, &name)?;
        let job = with(
            shell("job", &note("job")),
            &json!({ "restartPolicy": "OnFailure" }),
        );
        let spec = json!({
            "restartPolicy": policy,
            "initContainers": [shell("prepare", &note("prepare")), sidecar(noting("proxy"))],
            "containers": [noting("main"), job],
        });
        node.apply(&own.pod(&name, spec))?;
        notes.push(own);
    }
    for (policy, notes) in policies.iter().zip(&notes) {
        node.wait(&name_of(policy), "has done its job", |pod| {
            ended(pod, "job")["exitCode"] == 0
        })?;
        notes.wait(&node, "main begins")?;
    }

    node.lose_power()?;

    for (policy, notes) in policies.iter().zip(&notes).take(2) {
        let seen = node.wait(&name_of(policy), "runs again", |pod| {
            ["proxy", "main"]
                .iter()
                .all(|name| restarts(pod, name) == 1)
                && pod["status"]["phase"] == "Running"
        })?;
        notes.wait_count(&node, "main begins", 2)?;
        let lines = notes.lines();
        let from = lines.iter().rposition(|line| line == "prepare").unwrap();
        assert_eq!(notes.count("prepare"), 2, "{policy}: {lines:#?}");
        assert_eq!(
            lines[from..],
            ["prepare", "proxy begins", "main begins"],
            "{policy}: in order, and the job is not done again"
        );
        assert_eq!(restarts(&seen, "job"), 0, "{policy}");
        assert_eq!(ended(&seen, "job")["exitCode"], 0, "{policy}");
        assert!(ended_before(&seen, "main").is_object(), "{policy}");
    }
    let seen = node.wait_end("never")?;
    assert_eq!(seen["status"]["phase"], "Failed");
    assert_eq!(restarts(&seen, "main"), 0);
    assert_eq!(notes[2].count("main begins"), 1, "it is not started again");
    assert_eq!(notes[2].count("prepare"), 1);
    Ok(())
}
