//! The text that Prometheus reads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use rubelet_api::{
    container::PullPolicy,
    parse::api_pod,
    pod::Pod,
    status::{ContainerState, ContainerStatus, PodStatus, Terminated},
    volume_plugin::VolumePlugin,
};
use rubelet_base::PodUid;
use rubelet_cri::CALLS;
use serde_json::json;

use super::{
    AccessVerdict, BuildLabels, CgroupChange, HttpLabels, NodeMetrics, ObservedStart, PeerPing,
    PlegSnapshot, PodCounts, StartProgress, SyncKind, VolumeOperation, operation_type,
};

fn lines_of<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let ours = |line: &&str| line.split([' ', '{']).any(|word| word == name);
    text.lines().filter(ours).collect()
}

#[test]
fn counters_keep_the_names_of_the_kubelet() {
    let metrics = NodeMetrics::new();
    metrics.pleg.connection_errors.inc();
    let text = metrics.render();
    assert_eq!(
        lines_of(&text, "kubelet_pleg_discard_events"),
        [
            "# HELP kubelet_pleg_discard_events [ALPHA] The number of discard events in PLEG.",
            "# TYPE kubelet_pleg_discard_events counter",
            "kubelet_pleg_discard_events 0",
        ]
    );
    assert_eq!(
        lines_of(&text, "kubelet_evented_pleg_connection_error_count")[2],
        "kubelet_evented_pleg_connection_error_count 1"
    );
}

#[test]
fn histograms_have_the_buckets_of_the_kubelet() {
    let metrics = NodeMetrics::new();
    metrics.pleg.relist_duration.observe(0.02);
    metrics
        .runtime
        .call_ended("CreateContainer", Duration::from_secs(1), false);
    let text = metrics.render();
    let expected = "\
kubelet_pleg_relist_duration_seconds_bucket{le=\"0.005\"} 0
kubelet_pleg_relist_duration_seconds_bucket{le=\"0.01\"} 0
kubelet_pleg_relist_duration_seconds_bucket{le=\"0.025\"} 1
kubelet_pleg_relist_duration_seconds_bucket{le=\"0.05\"} 1
kubelet_pleg_relist_duration_seconds_bucket{le=\"0.1\"} 1
kubelet_pleg_relist_duration_seconds_bucket{le=\"0.25\"} 1
kubelet_pleg_relist_duration_seconds_bucket{le=\"0.5\"} 1
kubelet_pleg_relist_duration_seconds_bucket{le=\"1\"} 1
kubelet_pleg_relist_duration_seconds_bucket{le=\"2.5\"} 1
kubelet_pleg_relist_duration_seconds_bucket{le=\"5\"} 1
kubelet_pleg_relist_duration_seconds_bucket{le=\"10\"} 1
kubelet_pleg_relist_duration_seconds_bucket{le=\"+Inf\"} 1
kubelet_pleg_relist_duration_seconds_sum 0.02
kubelet_pleg_relist_duration_seconds_count 1
";
    assert!(text.contains(expected), "{text}");
    let bounds: Vec<_> = lines_of(&text, "kubelet_runtime_operations_duration_seconds_bucket")
        .into_iter()
        .filter_map(|line| line.split("le=\"").nth(1)?.split('"').next())
        .collect();
    assert_eq!(bounds.len(), 15);
    assert_eq!(bounds[..4], ["0.005", "0.0125", "0.03125", "0.078125"]);
    assert_eq!(
        lines_of(&text, "kubelet_runtime_operations_errors_total")[2],
        "kubelet_runtime_operations_errors_total{operation_type=\"create_container\"} 1"
    );
}

#[test]
fn a_state_that_no_container_has_any_more_goes_to_zero() {
    let metrics = NodeMetrics::new();
    metrics
        .pleg
        .set_running(2, &[("running", 3), ("exited", 1)]);
    metrics.pleg.set_running(1, &[("running", 2)]);
    let text = metrics.render();
    assert_eq!(
        lines_of(&text, "kubelet_running_containers")[2..],
        [
            "kubelet_running_containers{container_state=\"created\"} 0",
            "kubelet_running_containers{container_state=\"exited\"} 0",
            "kubelet_running_containers{container_state=\"running\"} 2",
            "kubelet_running_containers{container_state=\"unknown\"} 0",
        ]
    );
    assert_eq!(
        lines_of(&text, "kubelet_running_pods")[2],
        "kubelet_running_pods 1"
    );
}

#[test]
fn what_hangs_is_seen_while_it_hangs() {
    let metrics = NodeMetrics::new();
    let hanging = Arc::new(AtomicU64::new(0));
    let seconds = Arc::clone(&hanging);
    metrics.pleg.set_probe(move || PlegSnapshot {
        last_seen: Timestamp::from_second(1_790_000_000).ok(),
        relist: Some(Duration::from_secs(seconds.load(Ordering::Relaxed))),
        oldest_inspection: None,
        quarantined_pods: 3,
    });
    for age in [1, 75] {
        hanging.store(age, Ordering::Relaxed);
        let text = metrics.render();
        for expected in [
            format!("rubelet_pleg_relist_in_progress_seconds {age}\n"),
            "rubelet_pleg_inspection_in_progress_seconds 0\n".to_owned(),
            "rubelet_pleg_quarantined_pods 3\n".to_owned(),
            "kubelet_pleg_last_seen_seconds 1790000000\n".to_owned(),
        ] {
            assert!(text.contains(&expected), "{expected}{text}");
        }
    }
}

#[test]
fn every_call_to_the_runtime_has_its_upstream_name() {
    for call in CALLS {
        let name = operation_type(call);
        let plain = name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        assert!(plain, "{call} is counted as {name}");
    }
}

/// Counts something everywhere, so that every name is printed.
fn all_names() -> String {
    let metrics = NodeMetrics::new();
    metrics.pleg.set_running(0, &[]);
    metrics.pleg.missed_change("ContainerDied");
    metrics.pleg.inspection("event");
    metrics.pleg.event("STOPPED");
    metrics.runtime.call_ended("Version", Duration::ZERO, false);
    metrics.pods.preempted("memory");
    metrics.pods.evicted("memory.available");
    metrics
        .pods
        .eviction_measured("memory.available", Duration::ZERO);
    metrics.pods.volume_measured(Duration::ZERO);
    metrics.pods.synced(SyncKind::Create, Duration::ZERO);
    let labels = HttpLabels {
        method: "GET",
        path: "pods",
        server_type: "readwrite",
        long_running: false,
    };
    metrics.http.began(&labels);
    metrics.http.answered(&labels, 200);
    metrics.http.ended(&labels, Duration::ZERO);
    metrics.http.websocket("exec");
    metrics.http.connection_refused("readwrite", "silent");
    metrics.http.audit_dropped("queue", 1);
    metrics
        .peers
        .ping("n2", PeerPing::Answered(Duration::from_millis(1)));
    metrics
        .pods
        .cgroup_changed(CgroupChange::Create, Duration::ZERO);
    metrics.facts.set_node("n1");
    metrics.facts.set_build(&BuildLabels::default());
    metrics.facts.set_credential_providers("sha256:0");
    metrics.facts.set_metrics_provider(false);
    start_something(&metrics);
    let api = &metrics.api;
    api.request_ended("GET", "host", None, Duration::ZERO);
    metrics.render()
}

/// A pod with a container `a` that mounts an image twice, and an init container `i`.
fn pod() -> Pod {
    let mount = |path: &str| json!({"name": "tools", "mountPath": path});
    let object = json!({
        "metadata": {"name": "web", "namespace": "default", "uid": "u-1"},
        "spec": {
            "nodeName": "n",
            "volumes": [{"name": "tools", "image": {"reference": "tools:1"}}],
            "initContainers": [{"name": "i", "image": "app:1"}],
            "containers": [{
                "name": "a",
                "image": "app:1",
                "volumeMounts": [mount("/x"), mount("/y")],
            }],
        },
    });
    let parsed = api_pod(object, "n").unwrap_or_else(|errors| panic!("{errors:?}"));
    parsed.pod
}

/// The status of a pod whose container `a` has terminated with this code.
fn ended(exit_code: i32) -> PodStatus {
    let status = json!({
        "phase": "Running",
        "start_time": "2026-01-02T03:04:05Z",
        "pod_ips": [],
        "conditions": [],
        "init_containers": [],
        "containers": [],
    });
    let mut status: PodStatus = serde_json::from_value(status).unwrap();
    status.containers.push(ContainerStatus {
        name: "a".into(),
        state: ContainerState::Terminated(Terminated {
            exit_code,
            reason: "Error".into(),
            message: "".into(),
            started_at: None,
            finished_at: None,
            container_id: "".into(),
        }),
        image: "".into(),
        image_id: "".into(),
        container_id: "".into(),
        ready: false,
        started: false,
        restart_count: 0,
        last_state: None,
        user: None,
        recursive_read_only: Vec::new(),
    });
    status
}

/// Counts something in each metric of pods that start, and of their images and volumes.
fn start_something(metrics: &NodeMetrics) {
    let (starts, images, storage) = (&metrics.starts, &metrics.images, &metrics.storage);
    let pod = pod();
    starts.sandbox_ended("", Duration::ZERO, false);
    starts.container_failed(&pod, "a", "ErrImagePull");
    starts.status(None, &ended(1));
    metrics.pods.rejected("OutOfcpu");
    images.pulled(1, Duration::ZERO);
    images.requested(PullPolicy::Always, None, None);
    images.access_checked(AccessVerdict::Policy);
    images.plugin_ran("p", Duration::ZERO, false);
    storage.operation_ended(
        VolumePlugin::EmptyDir,
        VolumeOperation::Mount,
        Duration::ZERO,
        true,
    );
    storage.volume_ready(VolumePlugin::EmptyDir, Duration::ZERO);
    let mut counts = PodCounts::default();
    counts.actual_volumes.insert(VolumePlugin::EmptyDir, 1);
    metrics.pod_counts.set_probe(move || counts.clone());
    let start = ObservedStart {
        created: Some(Timestamp::UNIX_EPOCH),
        progress: StartProgress::New,
        is_stateful: false,
        has_host_network: false,
    };
    let started = ObservedStart {
        progress: StartProgress::Started {
            init: Duration::ZERO,
        },
        ..start.clone()
    };
    for start in [start, started] {
        metrics
            .start_latency
            .observed(&pod.uid, &start, Timestamp::UNIX_EPOCH);
    }
}

#[test]
fn the_text_is_well_formed_and_every_name_is_documented() {
    let document = include_str!("../../../../docs/metrics.md");
    let text = all_names();
    let mut names = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            let has_level = !name.starts_with("process_");
            assert_eq!(help.starts_with('['), has_level, "{line}");
            names.push(name);
        }
    }
    // Those of other endpoints have a section of their own.
    let (before, usage) = document.split_once("\n## Resource usage\n").unwrap();
    let (_, after) = usage.split_once("\n## ").unwrap();
    let documented: Vec<_> = before
        .lines()
        .chain(after.lines())
        .filter_map(|line| line.strip_prefix("| `")?.split(['`', '{']).next())
        .collect();
    let mut sorted = documented.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, names);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
        assert!(names.iter().any(|known| name.starts_with(known)), "{line}");
    }
}

#[test]
fn the_node_the_program_and_its_process_are_found() {
    let metrics = NodeMetrics::new();
    metrics.facts.set_node("n1");
    metrics.facts.set_cgroup_version(2);
    metrics.facts.set_build(&BuildLabels {
        git_version: "v1.36.0+rubelet.1",
        ..BuildLabels::default()
    });
    let used = |text: &str| {
        let line = lines_of(text, "process_cpu_seconds_total")[2];
        let (_, seconds) = line.rsplit_once(' ').unwrap();
        seconds.parse::<f64>().unwrap()
    };
    let first = metrics.render();
    assert!(
        first.contains("\nkubelet_node_name{node=\"n1\"} 1\n"),
        "{first}"
    );
    assert!(
        first.contains("git_version=\"v1.36.0+rubelet.1\""),
        "{first}"
    );
    assert!(first.contains("\nkubelet_cgroup_version 2\n"), "{first}");
    assert!(!first.contains("\nprocess_open_fds 0\n"), "{first}");
    assert!(used(&first) > 0.0, "{first}");
    let second = metrics.render();
    assert!(used(&second) >= used(&first), "{second}");
}

#[test]
fn what_docs_parity_says_of_a_name_is_so() {
    use rubelet_parity::{MISSING_METRICS, SAME_METRICS};
    let document = include_str!("../../../../docs/metrics.md");
    // Those of the prober stand on a page of their own.
    let documented = |name: &str| document.contains(&format!("`{name}"));
    for name in SAME_METRICS {
        assert!(documented(name), "{name}");
    }
    let kubelets = all_names();
    for line in kubelets.lines() {
        let name = line
            .strip_prefix("# TYPE ")
            .and_then(|line| line.split(' ').next());
        let Some(name) = name.filter(|name| !name.starts_with("rubelet_")) else {
            continue;
        };
        assert!(SAME_METRICS.contains(&name), "{name} is not in the table");
    }
    for name in MISSING_METRICS.iter().flat_map(|(_, names)| names.iter()) {
        assert!(!documented(name), "{name} is there");
    }
}

#[test]
fn each_instance_of_a_container_ends_once_however_often_its_status_is_shown() {
    let metrics = NodeMetrics::new();
    let name = "kubelet_terminated_containers_total";
    let count = |code: i32| {
        let labels = format!("container_type=\"container\",exit_code=\"{code}\",reason=\"Error\"");
        let text = metrics.render();
        let lines = lines_of(&text, name);
        let line = lines
            .iter()
            .find_map(|line| line.strip_prefix(&format!("{name}{{{labels}}} ")));
        line.map_or(0, |count| count.parse().unwrap())
    };
    let first = ended(3);
    metrics.starts.status(None, &first);
    metrics.starts.status(Some(&first), &first);
    assert_eq!(count(3), 1);
    // It waits, and then the next instance runs: the first one is the last state of both.
    let mut waits = first.clone();
    let ContainerState::Terminated(end) = first.containers[0].state.clone() else {
        panic!("it has ended");
    };
    waits.containers[0].last_state = Some(end);
    waits.containers[0].state = ContainerState::Waiting {
        reason: "CrashLoopBackOff".into(),
        message: "".into(),
    };
    metrics.starts.status(Some(&first), &waits);
    assert_eq!(count(3), 1);
    // The second one was never seen as anything but the last state.
    let mut third = waits.clone();
    third.containers[0].last_state = Some(Terminated {
        exit_code: 4,
        container_id: "second".into(),
        ..waits.containers[0].last_state.clone().unwrap()
    });
    metrics.starts.status(Some(&waits), &third);
    assert_eq!((count(3), count(4)), (1, 1));
    // What ended before this agent began was counted by another one.
    metrics.starts.status(None, &third);
    assert_eq!((count(3), count(4)), (1, 1));
}

#[test]
fn mounts_of_images_are_counted_by_volume_and_by_mount() {
    let pod = pod();
    for (failure, succeeded, failed) in [
        (None, 2, 0),
        (
            Some("rpc error: ImageVolumeMountFailed: no such image"),
            0,
            2,
        ),
        // The kubelet, too, takes any other failure for one of something else.
        (Some("no space left on device"), 2, 0),
    ] {
        let metrics = NodeMetrics::new();
        let container = &pod.spec.containers[0];
        metrics.starts.images_mounted(&pod, container, failure);
        let text = metrics.render();
        for (name, expected) in [
            ("requested_total", 1),
            ("mounted_succeed_total", succeeded),
            ("mounted_errors_total", failed),
        ] {
            let name = format!("kubelet_image_volume_{name}");
            assert_eq!(
                lines_of(&text, &name)[2],
                format!("{name} {expected}"),
                "{failure:?}"
            );
        }
    }
}

#[test]
fn rejections_have_a_few_reasons_whatever_pods_ask_for() {
    let metrics = NodeMetrics::new();
    for reason in [
        "OutOfcpu",
        "OutOfexample.com/gpu",
        "OutOfexample.com/fpga",
        "NodeAffinity",
    ] {
        metrics.pods.rejected(reason);
    }
    let name = "kubelet_admission_rejections_total";
    let line = |reason: &str, count: u32| format!("{name}{{reason=\"{reason}\"}} {count}");
    assert_eq!(
        lines_of(&metrics.render(), name)[2..],
        [
            line("Other", 1),
            line("OutOfExtendedResources", 2),
            line("OutOfcpu", 1)
        ]
    );
}

#[test]
fn pulls_are_told_apart_by_the_size_of_the_image() {
    let metrics = NodeMetrics::new();
    for bytes in [0, 1, 10 << 20, (10 << 20) + 1, 3 << 30, 200 << 30] {
        metrics.images.pulled(bytes, Duration::from_secs(7));
    }
    let name = "kubelet_image_pull_duration_seconds_count";
    let line = |size: &str, count: u32| format!("{name}{{image_size_in_bytes=\"{size}\"}} {count}");
    assert_eq!(
        lines_of(&metrics.render(), name),
        [
            line("0-10MB", 2),
            line("10MB-100MB", 1),
            line("1GB-5GB", 1),
            line("GT100GB", 1),
            line("N/A", 1)
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn the_start_of_a_pod_is_measured_without_its_pulls_and_init_containers() {
    let metrics = NodeMetrics::new();
    let (uid, latency) = (PodUid::from("u-1"), &metrics.start_latency);
    let seen = |progress| ObservedStart {
        created: Some(Timestamp::UNIX_EPOCH),
        progress,
        is_stateful: false,
        has_host_network: false,
    };
    let at = |second| Timestamp::from_second(second).unwrap();
    let started = seen(StartProgress::Started {
        init: Duration::from_secs(4),
    });
    let sum = |part: &str| {
        let name = format!("kubelet_pod_start_{part}_duration_seconds_sum");
        let text = metrics.render();
        let lines = lines_of(&text, &name);
        lines
            .first()
            .map(|line| line[name.len() + 1..].parse::<f64>().unwrap())
    };
    // One that was taken up before the agent started is not measured.
    latency.observed(&uid, &started, at(1));
    assert_eq!(sum("total"), None);
    latency.observed(&uid, &seen(StartProgress::New), at(2));
    assert!(latency.is_starting(&uid));
    // Two pulls at a time count once.
    let first = latency.pulling(&uid);
    tokio::time::advance(Duration::from_secs(2)).await;
    let second = latency.pulling(&uid);
    tokio::time::advance(Duration::from_secs(3)).await;
    drop(first);
    tokio::time::advance(Duration::from_secs(1)).await;
    drop(second);
    latency.observed(&uid, &seen(StartProgress::Starting), at(10));
    latency.observed(&uid, &started, at(30));
    assert_eq!((sum("total"), sum("sli")), (Some(30.0), Some(20.0)));
    let text = metrics.render();
    let first = "kubelet_first_network_pod_start_sli_duration_seconds";
    assert_eq!(lines_of(&text, first)[2], format!("{first} 20"));
    // Once only.
    latency.observed(&uid, &started, at(40));
    assert_eq!(sum("total"), Some(30.0));

    let other = PodUid::from("u-2");
    latency.observed(&other, &seen(StartProgress::New), at(50));
    latency.observed(&other, &seen(StartProgress::WasUnschedulable), at(51));
    assert!(!latency.is_starting(&other));
    latency.observed(&other, &started, at(60));
    let stateful = PodUid::from("u-3");
    latency.observed(&stateful, &seen(StartProgress::New), at(60));
    let started = ObservedStart {
        is_stateful: true,
        ..started
    };
    latency.observed(&stateful, &started, at(70));
    assert_eq!((sum("total"), sum("sli")), (Some(100.0), Some(20.0)));
    latency.observed(&stateful, &seen(StartProgress::New), at(70));
    latency.forget(&stateful);
    assert!(!latency.is_starting(&stateful));
}

#[test]
fn requests_are_counted_as_the_kubelet_counts_them_and_refusals_by_their_code() {
    let metrics = NodeMetrics::new();
    let labels = HttpLabels {
        method: "GET",
        path: "pods",
        server_type: "readwrite",
        long_running: false,
    };
    metrics.http.began(&labels);
    metrics.http.answered(&labels, 401);
    metrics.http.began(&labels);
    metrics.http.ended(&labels, Duration::from_millis(3));
    metrics.http.websocket("exec");
    let text = metrics.render();
    let values = "long_running=\"false\",method=\"GET\",path=\"pods\",server_type=\"readwrite\"";
    for (name, value) in [
        ("kubelet_http_requests_total", 2),
        ("kubelet_http_inflight_requests", 1),
        ("kubelet_http_requests_duration_seconds_count", 1),
    ] {
        let line = format!("{name}{{{values}}} {value}\n");
        assert!(text.contains(&line), "{line}{text}");
    }
    assert_eq!(
        lines_of(&text, "rubelet_http_responses_total")[2],
        "rubelet_http_responses_total{code=\"401\",path=\"pods\",server_type=\"readwrite\"} 1"
    );
    assert_eq!(
        lines_of(&text, "kubelet_websocket_streaming_requests_total")[2],
        "kubelet_websocket_streaming_requests_total{subresource=\"exec\"} 1"
    );
}

#[tokio::test]
async fn the_tasks_of_the_agent_are_counted_until_they_end() {
    let metrics = NodeMetrics::new();
    let count = || lines_of(&metrics.render(), "rubelet_async_tasks")[2].to_owned();
    assert_eq!(count(), "rubelet_async_tasks 0");
    let task = tokio::spawn(std::future::pending::<()>());
    assert_eq!(count(), "rubelet_async_tasks 1");
    task.abort();
    assert!(task.await.is_err());
    assert_eq!(count(), "rubelet_async_tasks 0");
}
