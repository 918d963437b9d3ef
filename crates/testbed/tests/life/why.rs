//! Pods with problems, and the output of `rubelet why`: the cause in the first line, the evidence
//! below.

use anyhow::Result;
use rubelet_testbed::Node;
use rubelet_testbed::manifest::{pod, shell, waiting, with};
use rubelet_testbed::status::{condition, restarts, runs, waits_for};
use serde_json::{Value, json};

/// A pod with a problem, how to detect it, and the expected output.
pub(crate) struct Problem {
    name: &'static str,
    pub(crate) pod: Value,
    is_there: fn(&Value) -> bool,
    headline: &'static str,
    evidence: &'static [&'static str],
}

/// One problem of each kind.
pub(crate) fn problems() -> [Problem; 4] {
    let crash = "echo first; echo the disk is on fire; exit 17";
    let probe = json!({
        "exec": { "command": ["sh", "-c", "echo no database; exit 2"] },
        "periodSeconds": 1,
        "timeoutSeconds": 5,
    });
    let unready = with(waiting("main"), &json!({ "readinessProbe": probe }));
    let missing = with(
        waiting("main"),
        // Nothing listens there, so that the pull fails immediately.
        &json!({ "image": "127.0.0.1:1/none:1", "imagePullPolicy": "Always" }),
    );
    let one = |name: &str, container: Value| pod(name, &json!({ "containers": [container] }));
    let init = json!({
        "restartPolicy": "Never",
        "initContainers": [shell("prepare", "echo no licence; exit 4")],
        "containers": [waiting("main")],
    });
    [
        Problem {
            name: "crashes",
            pod: one("crashes", shell("main", crash)),
            is_there: |pod| {
                restarts(pod, "main") >= 1 && waits_for(pod, "main") == "CrashLoopBackOff"
            },
            headline: "container main is waiting ",
            evidence: &["exit code 17", "| the disk is on fire", "next try in "],
        },
        Problem {
            name: "unready",
            pod: one("unready", unready),
            is_there: |pod| runs(pod, "main") && condition(pod, "Ready")["status"] == "False",
            headline: "its readiness probe ",
            evidence: &["readiness probe fails", "no database", "in a row"],
        },
        Problem {
            name: "missing",
            pod: one("missing", missing),
            is_there: |pod| waits_for(pod, "main") == "ImagePullBackOff",
            headline: "container main cannot start",
            evidence: &["127.0.0.1:1/none:1", "next try in "],
        },
        Problem {
            name: "unprepared",
            pod: pod("unprepared", &init),
            is_there: |pod| pod["status"]["phase"] == "Failed",
            headline: "has failed: init container prepare ended",
            evidence: &["exit code 4", "| no licence"],
        },
    ]
}

/// Waits until each has its problem and `rubelet why` prints all of it.
pub(crate) fn expect(node: &Node, problems: &[Problem]) -> Result<()> {
    for problem in problems {
        node.wait(problem.name, "has its problem", problem.is_there)?;
        let full = format!("pod/{}-testnode", problem.name);
        let mut said = String::new();
        let what = format!("{:?} is said of {full}", problem.evidence);
        // It may be between two attempts.
        let waited = crate::wait(node, &what, || {
            said = node.cli(&["why", &full])?;
            let all = problem.evidence.iter().all(|words| said.contains(words));
            Ok(all && first_line(&said).contains(problem.headline))
        });
        assert!(waited.is_ok(), "{said}\n{waited:?}");
        let begin = format!("pod default/{}-testnode ", problem.name);
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
