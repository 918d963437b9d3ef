//! Every default is the kubelet's.
//!
//! Source of the values: `pkg/kubelet/apis/config/v1beta1/defaults.go` of Kubernetes 1.36.

use rubelet_config::field::{Field, Kind};
use rubelet_config::{Flags, KubeletConfiguration, RubeletOptions, Sources, resolve};
use serde_json::{Value, json};
use std::time::Duration;

/// What `defaults.go` sets. A field that is not here has the zero of its type.
const UPSTREAM: &str = r#"{
    "enableServer": true,
    "podLogsDir": "/var/log/pods",
    "syncFrequency": "1m0s",
    "fileCheckFrequency": "20s",
    "httpCheckFrequency": "20s",
    "address": "0.0.0.0",
    "port": 10250,
    "authentication": {
        "anonymous": {"enabled": false},
        "webhook": {"enabled": true, "cacheTTL": "2m0s"}
    },
    "authorization": {
        "mode": "Webhook",
        "webhook": {"cacheAuthorizedTTL": "5m0s", "cacheUnauthorizedTTL": "30s"}
    },
    "registryPullQPS": 5,
    "registryBurst": 10,
    "imagePullCredentialsVerificationPolicy": "NeverVerifyPreloadedImages",
    "eventRecordQPS": 50,
    "eventBurst": 100,
    "enableDebuggingHandlers": true,
    "healthzPort": 10248,
    "healthzBindAddress": "127.0.0.1",
    "oomScoreAdj": -999,
    "streamingConnectionIdleTimeout": "4h0m0s",
    "nodeStatusUpdateFrequency": "10s",
    "nodeStatusReportFrequency": "5m0s",
    "nodeLeaseDurationSeconds": 40,
    "imageMinimumGCAge": "2m0s",
    "imageMaximumGCAge": "0s",
    "imageGCHighThresholdPercent": 85,
    "imageGCLowThresholdPercent": 80,
    "volumeStatsAggPeriod": "1m0s",
    "cgroupsPerQOS": true,
    "cgroupDriver": "cgroupfs",
    "cpuManagerPolicy": "none",
    "cpuManagerReconcilePeriod": "10s",
    "memoryManagerPolicy": "None",
    "topologyManagerPolicy": "none",
    "topologyManagerScope": "container",
    "runtimeRequestTimeout": "2m0s",
    "hairpinMode": "promiscuous-bridge",
    "maxPods": 110,
    "podPidsLimit": -1,
    "resolvConf": "/etc/resolv.conf",
    "cpuCFSQuota": true,
    "cpuCFSQuotaPeriod": "100ms",
    "nodeStatusMaxImages": 50,
    "maxOpenFiles": 1000000,
    "contentType": "application/vnd.kubernetes.protobuf",
    "kubeAPIQPS": 50,
    "kubeAPIBurst": 100,
    "serializeImagePulls": true,
    "evictionHard": {
        "memory.available": "100Mi",
        "nodefs.available": "10%",
        "nodefs.inodesFree": "5%",
        "imagefs.available": "15%",
        "imagefs.inodesFree": "5%"
    },
    "evictionPressureTransitionPeriod": "5m0s",
    "mergeDefaultEvictionSettings": false,
    "enableControllerAttachDetach": true,
    "makeIPTablesUtilChains": true,
    "iptablesMasqueradeBit": 14,
    "iptablesDropBit": 15,
    "failSwapOn": true,
    "containerLogMaxSize": "10Mi",
    "containerLogMaxFiles": 5,
    "containerLogMaxWorkers": 1,
    "containerLogMonitorInterval": "10s",
    "configMapAndSecretChangeDetectionStrategy": "Watch",
    "enforceNodeAllocatable": ["pods"],
    "volumePluginDir": "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/",
    "logging": {
        "format": "text",
        "flushFrequency": "5s",
        "verbosity": 0,
        "options": {"text": {"infoBufferSize": "0"}, "json": {"infoBufferSize": "0"}}
    },
    "enableSystemLogHandler": true,
    "shutdownGracePeriod": "0s",
    "shutdownGracePeriodCriticalPods": "0s",
    "crashLoopBackOff": {"maxContainerRestartPeriod": "5m0s"},
    "enableProfilingHandler": true,
    "enableDebugFlagsHandler": true,
    "seccompDefault": false,
    "memoryThrottlingFactor": 0.9,
    "memoryReservationPolicy": "None",
    "registerNode": true,
    "localStorageCapacityIsolation": true,
    "failCgroupV1": true,
    "userNamespaces": {"idsPerPod": 65536}
}"#;

fn upstream() -> Value {
    serde_json::from_str(UPSTREAM).expect("the text is JSON")
}

fn zero(kind: Kind) -> Value {
    match kind {
        Kind::Bool => json!(false),
        Kind::Integer | Kind::Float => json!(0),
        Kind::Text | Kind::Duration | Kind::Quantity => json!(""),
        Kind::TextList | Kind::IntegerList | Kind::ObjectList(_) => json!([]),
        Kind::TextMap | Kind::BoolMap | Kind::ListMap | Kind::Section(_) => json!({}),
    }
}

fn compare(fields: &[Field], ours: &Value, upstream: &Value, path: &str, count: &mut usize) {
    for field in fields {
        let path = format!("{path}/{}", field.name);
        let ours = &ours[field.name];
        let upstream = upstream.get(field.name);
        match field.kind {
            Kind::Section(inner) if !ours.is_null() => {
                compare(inner, ours, upstream.unwrap_or(&json!({})), &path, count);
            }
            kind => {
                *count += 1;
                let given = !ours.is_null();
                let expected = upstream.cloned().unwrap_or_else(|| zero(kind));
                assert!(
                    !given || *ours == expected,
                    "{path}: {ours}, upstream {expected}"
                );
                assert!(given || upstream.is_none(), "{path} has a default upstream");
            }
        }
    }
}

#[test]
fn an_unset_field_has_upstreams_default() {
    let flags = Flags::default();
    let resolved = resolve(Sources {
        file: None,
        drop_ins: &[],
        flags: &flags,
    })
    .unwrap();
    let ours = serde_json::to_value(&resolved.config).unwrap();
    let mut count = 0;
    compare(
        KubeletConfiguration::FIELDS,
        &ours,
        &upstream(),
        "",
        &mut count,
    );
    assert!(count > 130, "{count} fields were compared");
    assert_eq!(resolved.warnings, []);
    assert_eq!(resolved.config, KubeletConfiguration::default());
}

/// Everything of `part` is in `whole`, with the same value.
fn contains(whole: &Value, part: &Value, path: &str) {
    match part {
        Value::Object(entries) => {
            for (name, value) in entries {
                contains(&whole[name], value, &format!("{path}.{name}"));
            }
        }
        value => assert_eq!(whole, value, "{path}"),
    }
}

#[test]
fn configz_shows_every_default_and_what_was_given() {
    let flags = rubelet_config::parse_flags(
        ["--max-pods=7", "--kubeconfig=/k", "--sync-frequency=90s"]
            .map(str::to_owned)
            .into_iter(),
    )
    .unwrap();
    let file = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nclusterDNS: [10.0.0.10]\n";
    let resolved = resolve(Sources {
        file: Some(("k.yaml", file)),
        drop_ins: &[],
        flags: &flags,
    })
    .unwrap();
    let shown = &resolved.config.to_value();
    let mut expected = upstream();
    expected["kind"] = json!("KubeletConfiguration");
    expected["apiVersion"] = json!("kubelet.config.k8s.io/v1beta1");
    expected["maxPods"] = json!(7);
    expected["syncFrequency"] = json!("1m30s");
    expected["clusterDNS"] = json!(["10.0.0.10"]);
    contains(shown, &expected, "kubeletconfig");
}

#[test]
fn every_default_of_upstream_is_a_field_here() {
    fn known(fields: &[Field], values: &Value, path: &str) {
        for (name, value) in values.as_object().into_iter().flatten() {
            let field = fields.iter().find(|field| field.name == name);
            let field = field.unwrap_or_else(|| panic!("{path}/{name} is not a field"));
            if let Kind::Section(inner) = field.kind {
                known(inner, value, name);
            }
        }
    }
    known(KubeletConfiguration::FIELDS, &upstream(), "");
}

#[test]
fn the_table_names_every_field_of_the_type_and_no_other() {
    fn names(fields: &[Field], values: &Value) {
        let mut table: Vec<&str> = fields.iter().map(|field| field.name).collect();
        let mut written: Vec<&str> = values
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        table.sort_unstable();
        written.sort_unstable();
        assert_eq!(table, written);
        for field in fields {
            match field.kind {
                Kind::Section(inner) if !values[field.name].is_null() => {
                    names(inner, &values[field.name]);
                }
                _ => assert!(!field.help.trim().is_empty(), "{} has no help", field.name),
            }
        }
    }
    names(
        KubeletConfiguration::FIELDS,
        &serde_json::to_value(KubeletConfiguration::default()).unwrap(),
    );
    names(
        RubeletOptions::FIELDS,
        &serde_json::to_value(RubeletOptions::default()).unwrap(),
    );
}

#[test]
fn rubelets_own_defaults_are_safe() {
    let options = RubeletOptions::default();
    assert_eq!(options.socket, "/run/rubelet/rubelet.sock");
    assert_eq!(options.socket_group, "");
    assert_eq!(options.relist_period, Duration::from_secs(1));
}
