//! Files, drop-ins and flags are resolved into one configuration, with the origin of each value.

use rubelet_config::{
    Flags, KubeletConfiguration, Resolved, Sources, drop_in_order, parse_flags, resolve,
};
use serde_json::json;
use std::time::Duration;

const HEAD: &str = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";

fn flags(args: &[&str]) -> Flags {
    parse_flags(args.iter().map(|&arg| arg.to_owned())).expect("the flags are valid")
}

fn resolved(file: &str, drop_ins: &[(&str, &str)], args: &[&str]) -> Resolved {
    let text = format!("{HEAD}{file}");
    let drop_ins: Vec<(String, String)> = drop_ins
        .iter()
        .map(|(path, text)| ((*path).to_owned(), format!("{HEAD}{text}")))
        .collect();
    let flags = flags(args);
    let file = (!file.is_empty()).then_some(("/etc/kubelet.yaml", text.as_str()));
    resolve(Sources {
        file,
        drop_ins: &drop_ins,
        flags: &flags,
    })
    .unwrap_or_else(|error| panic!("{error}"))
}

fn origin(resolved: &Resolved, path: &str) -> String {
    resolved.origins.of(path).to_string()
}

#[test]
fn later_sources_win_and_the_winner_is_named() {
    let resolved = resolved(
        "maxPods: 10\nsyncFrequency: 30s\nclusterDNS: [10.0.0.10]\nregistryBurst: 7\n",
        &[
            (
                "/etc/d/10-a.conf",
                "maxPods: 20\nclusterDNS:\n- 10.0.0.20\n",
            ),
            ("/etc/d/20-b.conf", "maxPods: 30\nregistryBurst: null\n"),
        ],
        &[
            "--cluster-dns=10.0.0.30",
            "--cluster-dns",
            "10.0.0.31,10.0.0.32",
        ],
    );
    let config = &resolved.config;
    assert_eq!(config.max_pods, 30);
    assert_eq!(origin(&resolved, "maxPods"), "drop-in /etc/d/20-b.conf:3");
    assert_eq!(config.sync_frequency, Duration::from_secs(30));
    assert_eq!(
        origin(&resolved, "syncFrequency"),
        "file /etc/kubelet.yaml:4"
    );
    assert_eq!(config.cluster_dns, ["10.0.0.30", "10.0.0.31", "10.0.0.32"]);
    assert_eq!(origin(&resolved, "clusterDNS"), "flag --cluster-dns");
    assert_eq!(config.registry_burst, 10);
    assert_eq!(origin(&resolved, "registryBurst"), "default");
}

#[test]
fn mappings_are_merged_by_key_and_each_entry_has_its_origin() {
    let resolved = resolved(
        "featureGates: {MemoryQoS: true}\nkubeReserved:\n  cpu: 100m\n  memory: 1Gi\n",
        &[("a.conf", "kubeReserved:\n  memory: null\n  pid: \"10\"\n")],
        &[
            "--feature-gates=EventedPLEG=true",
            "--feature-gates=MemoryQoS=false",
        ],
    );
    let pairs: Vec<(&str, &str)> = resolved
        .config
        .kube_reserved
        .iter()
        .map(|(k, v)| (k.as_str(), v.as_str()))
        .collect();
    assert_eq!(pairs, [("cpu", "100m"), ("pid", "10")]);
    assert_eq!(
        origin(&resolved, "kubeReserved.cpu"),
        "file /etc/kubelet.yaml:5"
    );
    assert_eq!(origin(&resolved, "kubeReserved.pid"), "drop-in a.conf:5");
    assert!(resolved.gates.enabled("EventedPLEG"));
    assert!(!resolved.gates.enabled("MemoryQoS"));
    assert_eq!(
        origin(&resolved, "featureGates.MemoryQoS"),
        "flag --feature-gates"
    );
}

#[test]
fn a_mapping_given_by_flag_replaces_the_files() {
    let resolved = resolved(
        "evictionHard: {memory.available: 1Gi, nodefs.available: 5%}\n",
        &[],
        &["--eviction-hard=imagefs.available<1%"],
    );
    let pairs: Vec<(&String, &String)> = resolved.config.eviction_hard.iter().collect();
    assert_eq!(pairs, [(&"imagefs.available".to_owned(), &"1%".to_owned())]);
    assert_eq!(
        origin(&resolved, "evictionHard[imagefs.available]"),
        "flag --eviction-hard"
    );
}

#[test]
fn zero_means_not_given_where_upstream_has_no_pointer() {
    let resolved = resolved(
        "syncFrequency: 0s\nport: 0\ncgroupDriver: \"\"\nhealthzPort: 0\nresolvConf: \"\"\n\
         registryPullQPS: 0\npodPidsLimit: -7\nauthentication:\n  webhook:\n    cacheTTL: 0s\n    enabled: false\n",
        &[],
        &[],
    );
    let config = &resolved.config;
    assert_eq!(config.sync_frequency, Duration::from_secs(60));
    assert_eq!(origin(&resolved, "syncFrequency"), "default");
    assert_eq!(config.port, 10250);
    assert_eq!(config.cgroup_driver, "cgroupfs");
    assert_eq!(
        config.authentication.webhook.cache_ttl,
        Duration::from_secs(120)
    );
    assert_eq!(config.healthz_port, 0);
    assert_eq!(config.resolv_conf, "");
    assert_eq!(config.registry_pull_qps, 0);
    assert_eq!(config.pod_pids_limit, -1);
    assert!(!config.authentication.webhook.enabled);
    assert_eq!(origin(&resolved, "healthzPort"), "file /etc/kubelet.yaml:6");
}

#[test]
fn a_zero_in_a_drop_in_restores_the_default() {
    let resolved = resolved(
        "syncFrequency: 30s\n",
        &[("a.conf", "syncFrequency: 0s\n")],
        &[],
    );
    assert_eq!(resolved.config.sync_frequency, Duration::from_secs(60));
}

#[test]
fn a_zero_given_by_flag_is_zero() {
    let resolved = resolved("port: 1\n", &[], &["--streaming-connection-idle-timeout=0"]);
    assert_eq!(
        resolved.config.streaming_connection_idle_timeout,
        Duration::ZERO
    );
}

#[test]
fn defaults_that_follow_from_other_fields() {
    let one = resolved(
        "maxParallelImagePulls: 3\nnodeStatusUpdateFrequency: 7s\n",
        &[],
        &[],
    );
    assert!(!one.config.serialize_image_pulls);
    assert_eq!(
        one.config.node_status_report_frequency,
        Duration::from_secs(7)
    );
    let two = resolved(
        "maxParallelImagePulls: 1\nnodeStatusReportFrequency: 1m\n",
        &[],
        &[],
    );
    assert!(two.config.serialize_image_pulls);
    assert_eq!(
        two.config.node_status_report_frequency,
        Duration::from_secs(60)
    );
    assert_eq!(
        two.config.node_status_update_frequency,
        Duration::from_secs(10)
    );
}

#[test]
fn eviction_thresholds_keep_or_drop_their_defaults() {
    for (file, drop_in, count) in [
        ("port: 1\n", "", 5),
        ("evictionHard: {pid.available: 10%}\n", "", 1),
        (
            "evictionHard: {pid.available: 10%}\nmergeDefaultEvictionSettings: true\n",
            "",
            6,
        ),
        ("evictionHard: {}\n", "", 0),
        ("port: 1\n", "evictionHard: {pid.available: 10%}\n", 6),
        (
            "evictionHard: {pid.available: 10%}\n",
            "evictionHard: {memory.available: 1Gi}\n",
            2,
        ),
        ("port: 1\n", "evictionHard: {memory.available: null}\n", 4),
    ] {
        let drop_ins = [("a.conf", drop_in)];
        let drop_ins = if drop_in.is_empty() {
            &[][..]
        } else {
            &drop_ins[..]
        };
        let resolved = resolved(file, drop_ins, &[]);
        assert_eq!(
            resolved.config.eviction_hard.len(),
            count,
            "{file} {drop_in}"
        );
    }
}

#[test]
fn drop_ins_come_in_the_order_of_their_names() {
    let names = [
        "/d/b.conf",
        "/d/a.yaml",
        "/d/a/z.conf",
        "/d/10.conf",
        "/d/9.conf",
        "/d/a.conf~",
        "/d/a-b.conf",
    ];
    assert_eq!(
        drop_in_order(names.map(str::to_owned).to_vec()),
        [
            "/d/10.conf",
            "/d/9.conf",
            "/d/a/z.conf",
            "/d/a-b.conf",
            "/d/b.conf"
        ]
    );
}

#[test]
fn the_rubelet_section_is_in_the_same_files() {
    let resolved = resolved(
        "rubelet:\n  socketGroup: adm\n  relistPeriod: 0s\n  secretsAtRest: none\n",
        &[("a.conf", "rubelet:\n  socket: /tmp/r.sock\n")],
        &[],
    );
    assert_eq!(resolved.rubelet.socket_group, "adm");
    assert_eq!(resolved.rubelet.secrets_at_rest, "none");
    assert_eq!(resolved.rubelet.socket, "/tmp/r.sock");
    assert_eq!(resolved.rubelet.relist_period, Duration::from_secs(1));
    assert_eq!(origin(&resolved, "rubelet.socket"), "drop-in a.conf:4");
    assert_eq!(
        origin(&resolved, "rubelet.socketGroup"),
        "file /etc/kubelet.yaml:4"
    );
}

#[test]
fn edits_replace_static_pods_by_default_in_a_cluster_only() {
    for (text, alone, joined) in [
        ("{}", false, true),
        ("{staticPodEdits: Replace}", true, true),
        ("{staticPodEdits: InPlace}", false, false),
    ] {
        let options = resolved(&format!("rubelet: {text}\n"), &[], &[]).rubelet;
        let replaces = [false, true].map(|joined| options.replaces_static_pods(joined));
        assert_eq!(replaces, [alone, joined], "{text}");
    }
}

#[test]
fn json_files_are_read_too() {
    let text = r#"{"kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "maxPods": 3}"#;
    let flags = Flags::default();
    let file = Some(("k.json", text));
    let resolved = resolve(Sources {
        file,
        drop_ins: &[],
        flags: &flags,
    })
    .unwrap();
    assert_eq!(resolved.config.max_pods, 3);
    assert_eq!(origin(&resolved, "maxPods"), "file k.json:2");
}

#[test]
fn the_seccomp_flag_switches_on_and_never_off() {
    let on = resolved("port: 1\n", &[], &["--seccomp-default"]);
    assert!(on.config.seccomp_default);
    assert_eq!(origin(&on, "seccompDefault"), "flag --seccomp-default");
    let kept = resolved("seccompDefault: true\n", &[], &["--seccomp-default=false"]);
    assert!(kept.config.seccomp_default);
    assert_eq!(origin(&kept, "seccompDefault"), "file /etc/kubelet.yaml:3");
}

#[test]
fn options_for_clusters_cause_a_warning_without_one() {
    let told = |flags: &[&str]| -> Vec<String> {
        let resolved = resolved("maxPods: 3\n", &[], flags);
        resolved.warnings.iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        told(&[]),
        ["/etc/kubelet.yaml:3: maxPods: has no effect without an API server"]
    );
    assert_eq!(told(&["--kubeconfig=/etc/kubelet.conf"]), [""; 0]);
}

#[test]
fn options_without_effect_cause_a_warning() {
    let resolved = resolved(
        "enableContentionProfiling: true\ncontainerLogMaxSize: 10Mi\ntlsMinVersion: VersionTLS13\nlogging:\n  flushFrequency: 1s\n\
         evictionHard:\n  memory.available: 5%\nfeatureGates: {CRIListStreaming: true, GangScheduling: true, NodeSwap: true}\n",
        &[],
        &[
            "--maximum-dead-containers=3",
            "--experimental-mounter-path=/m",
            "--pod-infra-container-image=pause",
            "--kube-api-content-type=a",
        ],
    );
    let warnings: Vec<String> = resolved.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "/etc/kubelet.yaml:3: enableContentionProfiling: has no effect yet",
            "--kube-api-content-type: has no effect: requests are always JSON",
            "/etc/kubelet.yaml:7: logging.flushFrequency: has no effect: each line of the log is written immediately",
            "/etc/kubelet.yaml:10: featureGates.CRIListStreaming: this feature gate has no effect yet",
            "--experimental-mounter-path: has no effect yet",
            "--maximum-dead-containers: has no effect: one terminated instance of each container stays until its pod \
             is removed or its disk is full",
            "--pod-infra-container-image: has no effect: the runtime chooses the image of sandboxes, \
             and the kubelet has dropped the flag",
        ]
    );
}

#[test]
fn a_written_configuration_is_parsed_as_the_same_one() {
    let file = "staticPodPath: /m\nstaticPodURLHeader: {a: [b, c]}\nresolvConf: \"\"\nevictionHard: {}\n\
        enforceNodeAllocatable: []\nvolumeStatsAggPeriod: -1s\nmemoryThrottlingFactor: 0.5\ntracing: {}\n\
        singleProcessOOMKill: false\nmaxParallelImagePulls: 4\nlogging: {vmodule: [{filePattern: a, verbosity: 2}], flushFrequency: 7000000000}\n\
        registerWithTaints: [{key: a, effect: NoSchedule}]\nreservedMemory: [{numaNode: 0, limits: {memory: 1024}}]\n\
        shutdownGracePeriodByPodPriority: [{priority: 1, shutdownGracePeriodSeconds: 9}]\nkubeReserved: {cpu: 1500m}\n\
        rubelet: {socketGroup: adm}\nreadOnlyPort: 10255\nfeatureGates: {EventedPLEG: false}\n";
    let first = resolved(file, &[], &["--log-json-split-stream=false"]);
    let yaml = rubelet_yaml::to_yaml(&first.to_value());
    let flags = Flags::default();
    let again = resolve(Sources {
        file: Some(("again", &yaml)),
        drop_ins: &[],
        flags: &flags,
    })
    .unwrap_or_else(|error| panic!("{error}\n{yaml}"));
    assert_eq!(again.config, first.config);
    assert_eq!(again.rubelet, first.rubelet);
    assert_eq!(first.config.logging.flush_frequency, Duration::from_secs(7));
    assert_eq!(first.config.volume_stats_agg_period, None);
}

#[test]
fn a_configuration_is_written_in_upstreams_form() {
    let value = resolved("maxPods: 5\n", &[], &[]).config.to_value();
    assert_eq!(value["kind"], json!("KubeletConfiguration"));
    assert_eq!(value["apiVersion"], json!("kubelet.config.k8s.io/v1beta1"));
    assert_eq!(value["maxPods"], json!(5));
    assert_eq!(value["syncFrequency"], json!("1m0s"));
    assert_eq!(value["resolvConf"], json!("/etc/resolv.conf"));
    for absent in [
        "staticPodPath",
        "tracing",
        "clusterDNS",
        "memorySwap",
        "featureGates",
        "rubelet",
    ] {
        assert_eq!(value.get(absent), None, "{absent}");
    }
    let default = KubeletConfiguration::default().to_value();
    assert_eq!(default["evictionHard"]["memory.available"], json!("100Mi"));
}

#[test]
fn every_value_can_be_listed_with_its_origin() {
    let resolved = resolved(
        "evictionHard: {pid.available: 5%}\nlogging:\n  verbosity: 4\n",
        &[],
        &["--port=1"],
    );
    let leaves: Vec<String> = resolved
        .leaves()
        .iter()
        .filter(|leaf| leaf.origin != rubelet_config::Origin::Default)
        .map(|leaf| format!("{}={} {}", leaf.path, leaf.value, leaf.origin))
        .collect();
    assert_eq!(
        leaves,
        [
            "port=1 flag --port",
            "evictionHard[pid.available]=\"5%\" file /etc/kubelet.yaml:3",
            "logging.verbosity=4 file /etc/kubelet.yaml:5",
        ]
    );
    assert!(
        resolved
            .leaves()
            .iter()
            .any(|leaf| leaf.path == "rubelet.relistPeriod")
    );
}
