//! The command line is parsed as the kubelet parses it.

use rubelet_config::{
    FlagError, Flags, KubeletConfiguration, Role, RubeletOptions, all_flags, field::Kind,
    parse_flags,
};
use std::collections::BTreeSet;

fn parse(line: &str) -> Result<Flags, FlagError> {
    parse_flags(line.split_whitespace().map(str::to_owned))
}

/// The names in `cmd/kubelet/app/options` and the libraries it takes flags from, Kubernetes 1.36.
const UPSTREAM: &str = "
    config config-dir kubeconfig bootstrap-kubeconfig hostname-override node-ip node-labels cert-dir
    root-dir cloud-provider image-credential-provider-config image-credential-provider-bin-dir
    runtime-cgroups seccomp-default lock-file exit-on-lock-contention minimum-container-ttl-duration
    maximum-dead-containers-per-container maximum-dead-containers experimental-mounter-path
    experimental-allocatable-ignore-eviction help version v vmodule log-flush-frequency logging-format
    log-json-info-buffer-size log-json-split-stream log-text-info-buffer-size log-text-split-stream
    address allowed-unsafe-sysctls anonymous-auth authentication-token-webhook
    authentication-token-webhook-cache-ttl authorization-mode
    authorization-webhook-cache-authorized-ttl authorization-webhook-cache-unauthorized-ttl
    cgroup-driver cgroup-root cgroups-per-qos client-ca-file cluster-dns cluster-domain
    container-log-max-files container-log-max-size container-runtime-endpoint contention-profiling
    cpu-cfs-quota cpu-cfs-quota-period cpu-manager-policy cpu-manager-policy-options
    cpu-manager-reconcile-period enable-controller-attach-detach enable-debugging-handlers enable-server
    enforce-node-allocatable event-burst event-qps eviction-hard eviction-max-pod-grace-period
    eviction-minimum-reclaim eviction-pressure-transition-period eviction-soft
    eviction-soft-grace-period fail-cgroupv1 fail-swap-on feature-gates file-check-frequency hairpin-mode
    healthz-bind-address healthz-port http-check-frequency image-gc-high-threshold
    image-gc-low-threshold image-service-endpoint kernel-memcg-notification kube-api-burst
    kube-api-content-type kube-api-qps kube-reserved kube-reserved-cgroup kubelet-cgroups
    local-storage-capacity-isolation make-iptables-util-chains manifest-url manifest-url-header
    max-open-files max-pods memory-manager-policy minimum-image-ttl-duration node-status-max-images
    node-status-update-frequency oom-score-adj pod-cidr pod-manifest-path pod-max-pids pods-per-core port
    protect-kernel-defaults provider-id qos-reserved read-only-port register-node register-with-taints
    registry-burst registry-qps reserved-cpus reserved-memory resolv-conf rotate-certificates
    rotate-server-certificates runonce runtime-request-timeout serialize-image-pulls
    streaming-connection-idle-timeout sync-frequency system-cgroups system-reserved
    system-reserved-cgroup tls-cert-file tls-cipher-suites tls-min-version tls-private-key-file
    topology-manager-policy topology-manager-policy-options topology-manager-scope volume-plugin-dir
    volume-stats-agg-period housekeeping-interval max-housekeeping-interval
    application-metrics-count-limit boot-id-file container-hints containerd containerd-namespace
    enable-load-reader event-storage-age-limit event-storage-event-limit global-housekeeping-interval
    log-cadvisor-usage machine-id-file storage-driver-buffer-duration storage-driver-db
    storage-driver-host storage-driver-password storage-driver-secure storage-driver-table
    storage-driver-user
";

#[test]
fn every_flag_of_the_kubelet_exists_and_few_others() {
    let upstream: BTreeSet<&str> = UPSTREAM.split_whitespace().collect();
    let ours: Vec<&str> = all_flags().map(|flag| flag.name).collect();
    let unique: BTreeSet<&str> = ours.iter().copied().collect();
    assert_eq!(ours.len(), unique.len(), "a flag is in the table twice");
    assert_eq!(
        upstream.difference(&unique).collect::<Vec<_>>(),
        Vec::<&&str>::new()
    );
    let extra: Vec<&&str> = unique.difference(&upstream).collect();
    let (runtime, other): (Vec<&str>, Vec<&str>) = extra
        .into_iter()
        .partition(|name| name.starts_with("runtime-"));
    assert_eq!(other, ["pod-infra-container-image"]);
    // Those of the embedded runtime, which the kubelet does not have.
    assert_eq!(runtime.len(), 11);
}

#[test]
fn a_flag_that_sets_a_field_names_one_that_exists() {
    for flag in all_flags() {
        if let Role::Field(path) = flag.role {
            let (mut fields, path) = match path.strip_prefix("rubelet.") {
                Some(path) => (RubeletOptions::FIELDS, path),
                None => (KubeletConfiguration::FIELDS, path),
            };
            for part in path.split('.') {
                let field = fields.iter().find(|field| field.name == part);
                let field = field.unwrap_or_else(|| panic!("--{}: no field {path}", flag.name));
                fields = match field.kind {
                    Kind::Section(inner) => inner,
                    _ => &[],
                };
            }
            assert!(fields.is_empty(), "--{}: {path} is a section", flag.name);
        } else {
            assert!(!flag.help.is_empty(), "--{} has no help", flag.name);
        }
    }
}

#[test]
fn a_value_follows_its_flag_or_an_equals_sign() {
    for line in [
        "--root-dir=/r",
        "--root-dir /r",
        "--root_dir /r",
        "--root-dir=/x --root-dir=/r",
    ] {
        assert_eq!(parse(line).unwrap().root_dir(), "/r", "{line}");
    }
}

#[test]
fn the_verbosity_has_a_short_form() {
    for line in ["-v=4", "-v 4", "-v4", "--v=4", "--v 4"] {
        assert_eq!(parse(line).unwrap().verbosity(), Some(4), "{line}");
    }
    assert_eq!(parse("").unwrap().verbosity(), None);
}

#[test]
fn a_boolean_takes_a_value_after_an_equals_sign_only() {
    assert!(parse("--seccomp-default").unwrap().seccomp_default());
    assert!(parse("--seccomp-default=T").unwrap().seccomp_default());
    assert!(
        !parse("--seccomp-default --seccomp-default=false")
            .unwrap()
            .seccomp_default()
    );
}

#[test]
fn help_and_version_take_precedence_over_errors() {
    assert!(parse("--bootstrap-kubeconfig=/k -h").unwrap().help());
    assert!(
        parse("--bootstrap-kubeconfig=/k --version")
            .unwrap()
            .version()
    );
    assert!(parse("--version=raw").unwrap().version());
    assert!(!parse("--version=false").unwrap().version());
}

#[test]
fn flags_without_a_field_have_getters() {
    let flags = parse(
        "--config=/c --config-dir=/d --hostname-override=h --node-ip=10.0.0.1,fd00::1 \
         --node-labels=a=b,c= --node-labels=d=e --cert-dir=/p --lock-file=/l \
         --exit-on-lock-contention --vmodule=pleg=3 --kubeconfig=/k \
         --bootstrap-kubeconfig=/b --cloud-provider=external",
    )
    .unwrap();
    assert_eq!(flags.config(), Some("/c"));
    assert_eq!(flags.config_dir(), Some("/d"));
    assert_eq!(flags.hostname_override(), Some("h"));
    let ips: Vec<String> = flags.node_ips().iter().map(ToString::to_string).collect();
    assert_eq!(ips, ["10.0.0.1", "fd00::1"]);
    let labels: Vec<(String, String)> = flags.node_labels().into_iter().collect();
    let expected = [("a", "b"), ("c", ""), ("d", "e")];
    assert_eq!(
        labels,
        expected.map(|(key, value)| (key.to_owned(), value.to_owned()))
    );
    assert_eq!(flags.cert_dir(), "/p");
    assert_eq!(flags.kubeconfig(), Some("/k"));
    assert_eq!(flags.bootstrap_kubeconfig(), Some("/b"));
    assert!(flags.cloud_is_external());
    assert_eq!(flags.lock_file(), Some("/l"));
    assert!(flags.exit_on_lock_contention());
    assert_eq!(flags.vmodule(), [("pleg".to_owned(), 3)]);
    let none = parse("").unwrap();
    assert_eq!(
        (none.root_dir(), none.cert_dir()),
        ("/var/lib/kubelet", "/var/lib/kubelet/pki")
    );
    assert_eq!((none.config(), none.node_ips()), (None, vec![]));
    assert_eq!((none.kubeconfig(), none.cloud_is_external()), (None, false));
}
