//! Pods in trouble, and what `rubelet why` says of them: the cause in the first line, the evidence
//! below.

use anyhow::Result;
use rubelet_testbed::Node;
use rubelet_testbed::manifest::{pod, shell, waiting, with};
use rubelet_testbed::status::{condition, restarts, runs, waits_for};
use serde_json::{Value, json};

/// A pod in trouble, when it is so, and what is said of it then.
pub(crate) struct Trouble {
    name: &'static str,
    pub(crate) pod: Value,
    is_there: fn(&Value) -> bool,
    headline: &'static str,
    evidence: &'static [&'static str],
}

/// One of each kind.
pub(crate) fn troubles() -> [Trouble; 4] {
    let crash = "echo first; echo the disk is on fire; exit 17";
    let probe = json!({
        "exec": { "command": ["sh", "-c", "echo no database; exit 2"] },
        "periodSeconds": 1,
        "timeoutSeconds": 5,
    });
    let unready = with(waiting("main"), &json!({ "readinessProbe": probe }));
    let missing = with(
        waiting("main"),
        // Nobody listens there, so that the pull fails at once.
        &json!({ "image": "127.0.0.1:1/none:1", "imagePullPolicy": "Always" }),
    );
    let one = |name: &str, container: Value| pod(name, &json!({ "containers": [container] }));
    let init = json!({
        "restartPolicy": "Never",
        "initContainers": [shell("prepare", "echo no licence; exit 4")],
        "containers": [waiting("main")],
    });
    [
        Trouble {
            name: "crashes",
            pod: one("crashes", shell("main", crash)),
            is_there: |pod| {
                restarts(pod, "main") >= 1 && waits_for(pod, "main") == "CrashLoopBackOff"
            },
            headline: "container main is waiting ",
            evidence: &["exit code 17", "| the disk is on fire", "next try in "],
        },
        Trouble {
            name: "unready",
            pod: one("unready", unready),
            is_there: |pod| runs(pod, "main") && condition(pod, "Ready")["status"] == "False",
            headline: "its readiness probe ",
            evidence: &["readiness probe fails", "no database", "in a row"],
        },
        Trouble {
            name: "missing",
            pod: one("missing", missing),
            is_there: |pod| waits_for(pod, "main") == "ImagePullBackOff",
            headline: "container main can't start",
            evidence: &["127.0.0.1:1/none:1", "next try in "],
        },
        Trouble {
            name: "unprepared",
            pod: pod("unprepared", &init),
            is_there: |pod| pod["status"]["phase"] == "Failed",
            headline: "has failed: init container prepare ended",
            evidence: &["exit code 4", "| no licence"],
        },
    ]
}

/// Waits until each is in trouble and `rubelet why` says all of it.
pub(crate) fn expect(node: &Node, troubles: &[Trouble]) -> Result<()> {
    for trouble in troubles {
        node.wait(trouble.name, "is in trouble", trouble.is_there)?;
        let full = format!("pod/{}-testnode", trouble.name);
        let mut said = String::new();
        let what = format!("{:?} is said of {full}", trouble.evidence);
        // It may be just between two tries.
        let waited = crate::wait(node, &what, || {
            said = node.cli(&["why", &full])?;
            let all = trouble.evidence.iter().all(|words| said.contains(words));
            Ok(all && first_line(&said).contains(trouble.headline))
        });
        assert!(waited.is_ok(), "{said}\n{waited:?}");
        let begin = format!("pod default/{}-testnode ", trouble.name);
        assert!(first_line(&said).starts_with(&begin), "{said}");
    }
    let document = node.cli(&["why", "crashes-testnode", "-o", "json"])?;
    let document: Value = serde_json::from_str(&document)?;
    let end = &document["containers"][0]["ends"][0];
    assert_eq!(end["exitCode"], 17, "{document:#}");
    let log = json!(["first", "the disk is on fire"]);
    assert_eq!(end["log"], log, "{document:#}");
    Ok(())
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
