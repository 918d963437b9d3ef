//! Jobs and CronJobs.

use serde_json::{Value, json};

use super::{applies, apply, pods, reason, template, wait_long, wait_pods};
use crate::joined::{Joined, WAITS, condition};

/// A job whose pods run this script and are not restarted by the node.
fn job(name: &str, script: &str, more: &Value) -> Value {
    let mut template = template(name, script);
    template["spec"]["restartPolicy"] = "Never".into();
    let mut job = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": { "name": name },
        "spec": { "template": template },
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        job["spec"][key] = value.clone();
    }
    job
}

fn wait_job(joined: &Joined, name: &str, kind: &str) -> Value {
    wait_long(joined, &format!("job/{name}"), |job| {
        condition(job, kind) == "True"
    })
}

#[test]
fn jobs_end_according_to_the_exit_codes_of_their_pods() {
    if !applies() {
        return;
    }
    let joined = Joined::start("worker");
    let many = json!({ "completions": 4, "parallelism": 2 });
    apply(&joined, &job("good", "true", &many));
    apply(
        &joined,
        &job("bad", "exit 1", &json!({ "backoffLimit": 1 })),
    );
    let rule = json!({
        "action": "FailJob",
        "onExitCodes": { "containerName": "main", "operator": "In", "values": [42] },
    });
    let policy = json!({ "backoffLimit": 5, "podFailurePolicy": { "rules": [rule] } });
    apply(&joined, &job("hopeless", "exit 42", &policy));

    let good = wait_job(&joined, "good", "Complete");
    assert_eq!(good["status"]["succeeded"], 4);
    let bad = wait_job(&joined, "bad", "Failed");
    assert_eq!(reason(&bad, "Failed"), "BackoffLimitExceeded");
    assert_eq!(bad["status"]["failed"], 2);
    let hopeless = wait_job(&joined, "hopeless", "Failed");
    assert_eq!(reason(&hopeless, "Failed"), "PodFailurePolicy");
    assert_eq!(hopeless["status"]["failed"], 1);
    joined.cluster.no_violations().unwrap();
}

#[test]
fn an_evicted_pod_of_a_job_is_replaced_without_a_failure() {
    if !applies() {
        return;
    }
    let joined = Joined::start("worker");
    let rule = json!({
        "action": "Ignore",
        "onPodConditions": [{ "type": "DisruptionTarget", "status": "True" }],
    });
    let policy = json!({ "backoffLimit": 0, "podFailurePolicy": { "rules": [rule] } });
    // It fails on SIGTERM.
    let script = WAITS.replace("exit 0", "exit 1");
    apply(&joined, &job("long", &script, &policy));
    let running = |pods: &[Value]| pods.len() == 1 && condition(&pods[0], "Ready") == "True";
    let first = wait_pods(&joined, "long", "it runs", running);
    let name = first[0]["metadata"]["name"].as_str().unwrap();
    let eviction = json!({
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": { "name": name, "namespace": "default" },
    });
    let file = joined.cluster.path("eviction.json");
    std::fs::write(&file, eviction.to_string()).unwrap();
    let path = format!("/api/v1/namespaces/default/pods/{name}/eviction");
    joined
        .kubectl
        .stdout(&["create", "--raw", &path, "-f", &file.display().to_string()]);
    wait_pods(&joined, "long", "another one runs", |pods| {
        let is_new = |pod: &&Value| pod["metadata"]["name"] != name;
        pods.iter()
            .filter(is_new)
            .any(|pod| condition(pod, "Ready") == "True")
    });
    let job = wait_long(&joined, "job/long", |_| true);
    assert_eq!(condition(&job, "Failed"), "", "{job}");
    joined
        .kubectl
        .stdout(&["delete", "job", "long", "--timeout=60s"]);
    joined.wait_empty();
    joined.cluster.no_violations().unwrap();
}

#[test]
fn a_cron_job_runs_every_minute() {
    if !applies() {
        return;
    }
    let joined = Joined::start("worker");
    let cron = json!({
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": { "name": "tick" },
        "spec": {
            "schedule": "* * * * *",
            "jobTemplate": { "spec": job("tick", "echo ticked", &json!({}))["spec"] },
        },
    });
    apply(&joined, &cron);
    let seen = wait_long(&joined, "cronjob/tick", |cron| {
        cron["status"]["lastSuccessfulTime"].is_string()
    });
    assert!(seen["status"]["lastScheduleTime"].is_string(), "{seen}");
    let done = pods(&joined, "tick");
    assert_eq!(done[0]["status"]["phase"], "Succeeded");
    let name = done[0]["metadata"]["name"].as_str().unwrap();
    assert_eq!(joined.kubectl.stdout(&["logs", name]), "ticked\n");
    joined
        .kubectl
        .stdout(&["delete", "cronjob", "tick", "--timeout=60s"]);
    joined.cluster.no_violations().unwrap();
}
