//! An invalid configuration is refused with one line: position, field, allowed values.

use rubelet_config::{Sources, parse_flags, resolve};

const HEAD: &str = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";

fn error_of(file: &str, drop_in: &str, args: &[&str]) -> String {
    let flags = match parse_flags(args.iter().map(|&arg| arg.to_owned())) {
        Ok(flags) => flags,
        Err(error) => return error.to_string(),
    };
    let drop_ins = [("d/1.conf".to_owned(), drop_in.to_owned())];
    let drop_ins = if drop_in.is_empty() {
        &[][..]
    } else {
        &drop_ins[..]
    };
    let file = (!file.is_empty()).then_some(("k.yaml", file));
    match resolve(Sources {
        file,
        drop_ins,
        flags: &flags,
    }) {
        Ok(_) => "accepted".to_owned(),
        Err(error) => error.to_string(),
    }
}

/// Asserts the error of each configuration.
#[track_caller]
fn assert_errors(rows: &[(&str, &str)]) {
    for (line, expected) in rows {
        let text = format!("{HEAD}{line}\n");
        assert_eq!(error_of(&text, "", &[]), *expected, "{line}");
    }
}

#[test]
fn an_invalid_field_is_named_with_its_position_and_the_allowed_values() {
    assert_errors(&[
        (
            "maxPod: 3",
            "k.yaml:3:1: maxPod: unknown field; did you mean \"maxPods\"?",
        ),
        (
            "maxPods: many",
            "k.yaml:3:10: maxPods: expected a whole number from -2147483648 to 2147483647, found the string \"many\"",
        ),
        (
            "maxPods: -1",
            "k.yaml:3:1: maxPods: must be 0 or more, is -1",
        ),
        (
            "syncFrequency: 10",
            "k.yaml:3:16: syncFrequency: expected a duration such as 10s or 1h30m, found the number 10",
        ),
        (
            "syncFrequency: 10sec",
            "k.yaml:3:16: syncFrequency: missing or unknown unit in duration \"10sec\"; units are ns, us, ms, s, m, h",
        ),
        (
            "healthzPort: 70000",
            "k.yaml:3:1: healthzPort: must be from 0 to 65535, is 70000",
        ),
        (
            "healthzBindAddress: localhost",
            "k.yaml:3:1: healthzBindAddress: must be an IP address, is \"localhost\"",
        ),
        (
            "cgroupDriver: docker",
            "k.yaml:3:1: cgroupDriver: must be \"cgroupfs\" or \"systemd\", is \"docker\"",
        ),
        (
            "containerRuntimeEndpoint: tcp://a:1",
            "k.yaml:3:1: containerRuntimeEndpoint: must be a unix socket such as unix:///run/containerd/containerd.sock, is \"tcp://a:1\"",
        ),
        (
            "imageServiceEndpoint: unix:///run/i.sock",
            "k.yaml:3:1: imageServiceEndpoint: needs containerRuntimeEndpoint: the embedded runtime has its own images",
        ),
        (
            "cpuCFSQuotaPeriod: 2s",
            "k.yaml:3:1: cpuCFSQuotaPeriod: must be from 1ms to 1s, is 2s",
        ),
        (
            "imageGCHighThresholdPercent: 70",
            "k.yaml:3:1: imageGCHighThresholdPercent: imageGCLowThresholdPercent must be less than imageGCHighThresholdPercent; they are 80 and 70",
        ),
        (
            "evictionHard: {memory.free: 1Gi}",
            "k.yaml:3:16: evictionHard[memory.free]: unknown signal; allowed are \"memory.available\", \"allocatableMemory.available\", \"nodefs.available\", \"nodefs.inodesFree\", \"imagefs.available\", \"imagefs.inodesFree\", \"containerfs.available\", \"containerfs.inodesFree\" or \"pid.available\"",
        ),
        (
            "evictionHard:\n  memory.available: 120%",
            "k.yaml:4:3: evictionHard[memory.available]: must be a quantity such as 100Mi or from 0% to 100%, is \"120%\"",
        ),
        (
            "evictionSoft: {memory.available: 1Gi}",
            "k.yaml:3:16: evictionSoft[memory.available]: needs an entry of the same name in evictionSoftGracePeriod",
        ),
        (
            "kubeReserved:\n  gpu: \"1\"",
            "k.yaml:4:3: kubeReserved.gpu: cannot be reserved; allowed are \"cpu\", \"memory\", \"ephemeral-storage\" or \"pid\"",
        ),
        (
            "kubeReserved:\n  cpu: 1",
            "k.yaml:4:8: kubeReserved.cpu: expected a string, found the number 1; put it in quotes",
        ),
    ]);
    assert_errors(&BAD_FIELDS);
}

/// Configurations with an invalid field, and their errors.
const BAD_FIELDS: [(&str, &str); 20] = [
    (
        "enforceNodeAllocatable: [pods, kube-reserved]",
        "k.yaml:3:32: enforceNodeAllocatable[1]: \"kube-reserved\" needs kubeReservedCgroup",
    ),
    (
        "kubeReservedCgroup: /kube\nenforceNodeAllocatable: [kube-reserved-compressible]",
        "k.yaml:4:26: enforceNodeAllocatable[0]: \"kube-reserved-compressible\" needs kubeReserved",
    ),
    (
        "clusterDNS: [10.0.0.10, dns]",
        "k.yaml:3:25: clusterDNS[1]: must be an IP address, is \"dns\"",
    ),
    (
        "featureGates: {EventedPleg: true}",
        "k.yaml:3:16: featureGates.EventedPleg: unknown feature gate; did you mean \"EventedPLEG\"?",
    ),
    (
        "featureGates: {NodeSwap: false}",
        "k.yaml:3:16: featureGates.NodeSwap: cannot be false; the gate is locked to true",
    ),
    (
        "shutdownGracePeriodCriticalPods: 5s",
        "k.yaml:3:1: shutdownGracePeriodCriticalPods: shutdownGracePeriodCriticalPods must not be more than shutdownGracePeriod; they are 5s and 0s",
    ),
    (
        "shutdownGracePeriodByPodPriority:\n- {priority: 0, shutdownGracePeriodSeconds: -1}",
        "k.yaml:4:17: shutdownGracePeriodByPodPriority[0].shutdownGracePeriodSeconds: must be 0 or more, is -1",
    ),
    (
        "registerWithTaints:\n- key: a\n  effect: Never",
        "k.yaml:5:3: registerWithTaints[0].effect: must be \"NoSchedule\", \"PreferNoSchedule\" or \"NoExecute\", is \"Never\"",
    ),
    (
        "logging:\n  verbositee: 1",
        "k.yaml:4:3: logging.verbositee: unknown field; did you mean \"verbosity\"?",
    ),
    (
        "logging: {format: xml}",
        "k.yaml:3:11: logging.format: must be \"text\" or \"json\", is \"xml\"",
    ),
    (
        "crashLoopBackOff: {maxContainerRestartPeriod: 400s}",
        "k.yaml:3:20: crashLoopBackOff.maxContainerRestartPeriod: must be from 1s to 300s, is 6m40s",
    ),
    (
        "staticPodURL: ftp://x/y",
        "k.yaml:3:1: staticPodURL: must begin with http:// or https:// and name a host, is \"ftp://x/y\"",
    ),
    (
        "podLogsDir: /var/../log",
        "k.yaml:3:1: podLogsDir: must not contain empty, \".\" or \"..\" components, is \"/var/../log\"",
    ),
    (
        "runOnce: true",
        "k.yaml:3:1: runOnce: must be false; upstream removed this mode",
    ),
    (
        "allowedUnsafeSysctls: [vm.swappiness]",
        "k.yaml:3:24: allowedUnsafeSysctls[0]: must belong to a pod's namespaces: kernel.shm*, kernel.msg*, kernel.sem, fs.mqueue.* or net.*; is \"vm.swappiness\"",
    ),
    (
        "tlsCertFile: /a",
        "k.yaml:3:1: tlsCertFile: tlsCertFile and tlsPrivateKeyFile must be given together",
    ),
    (
        "tlsCipherSuites: [TLS_AES_128_GCM_SHA265]",
        "k.yaml:3:19: tlsCipherSuites[0]: must be a cipher suite's name in Go, is \"TLS_AES_128_GCM_SHA265\"; did you mean \"TLS_AES_128_GCM_SHA256\"?",
    ),
    (
        "memorySwap: {swapBehavior: UnlimitedSwap}",
        "k.yaml:3:14: memorySwap.swapBehavior: must be \"\", \"LimitedSwap\" or \"NoSwap\", is \"UnlimitedSwap\"",
    ),
    (
        "maxPods: 3\nmaxPods: 4",
        "k.yaml:4:1: maxPods: field is given twice",
    ),
    (
        "\tmaxPods: 3",
        "k.yaml:3:1: tab in the indentation; YAML is indented with spaces",
    ),
];

#[test]
fn an_invalid_option_of_rubelet_is_named_the_same_way() {
    assert_errors(&[
        (
            "rubelet: {runtime: {bridge: a-bridge-of-mine}}",
            "k.yaml:3:21: rubelet.runtime.bridge: must be a network interface's name of at most 15 characters, is \"a-bridge-of-mine\"",
        ),
        (
            "rubelet: {runtime: {containerLogMaxTotal: lots}}",
            "k.yaml:3:21: rubelet.runtime.containerLogMaxTotal: must be empty or a quantity such as 100Mi, is \"lots\"",
        ),
        (
            "rubelet: {runtime: {bridgeSubnets: [10.88.0.0]}}",
            "k.yaml:3:21: rubelet.runtime.bridgeSubnets: must be subnets such as 10.88.0.0/16, has \"10.88.0.0\"",
        ),
        (
            "rubelet: {runtime: {network: calico}}",
            "k.yaml:3:21: rubelet.runtime.network: must be empty, `bridge` or `cni`, is \"calico\"",
        ),
        (
            "rubelet: {runtime: {cgroup: /}}",
            "k.yaml:3:21: rubelet.runtime.cgroup: must be an absolute path other than /, is \"/\"",
        ),
        (
            "rubelet: {runtime: {socket: r.sock}}",
            "k.yaml:3:21: rubelet.runtime.socket: must be `none` or the absolute path of a unix socket of at most 107 bytes, is \"r.sock\"",
        ),
        (
            "rubelet: {peerPings: {peers: [a, \"b c\"]}}",
            "k.yaml:3:23: rubelet.peerPings.peers: must be addresses or host names, has \"b c\"",
        ),
        (
            "rubelet: {peerPings: {interval: 10ms}}",
            "k.yaml:3:23: rubelet.peerPings.interval: must be at least 100ms, is 10ms",
        ),
        (
            "rubelet: {staticPodEdits: replace}",
            "k.yaml:3:11: rubelet.staticPodEdits: must be empty, `InPlace` or `Replace`, is \"replace\"",
        ),
        (
            "rubelet: {secretsAtRest: plain}",
            "k.yaml:3:11: rubelet.secretsAtRest: must be \"encrypted\" or \"none\", is \"plain\"",
        ),
        (
            "rubelet: {secretsKeyFile: secrets.key}",
            "k.yaml:3:11: rubelet.secretsKeyFile: must be the absolute path of a file, is \"secrets.key\"",
        ),
        (
            "rubelet: {sockt: /a}",
            "k.yaml:3:11: rubelet.sockt: unknown field; did you mean \"socket\"?",
        ),
        (
            "rubelet: {audit: {path: audit.log}}",
            "k.yaml:3:19: rubelet.audit.path: must be the absolute path of a file, is \"audit.log\"",
        ),
        (
            "rubelet: {audit: {path: /a, level: Request}}",
            "k.yaml:3:29: rubelet.audit.level: must be None or Metadata, is \"Request\"",
        ),
        (
            "rubelet: {audit: {path: /a, level: None, policyFile: /p}}",
            "k.yaml:3:29: rubelet.audit.level: cannot be given with policyFile, whose rules set the levels",
        ),
        (
            "rubelet: {audit: {policyFile: /p}}",
            "rubelet.audit.path: must be given with policyFile or level: without it nothing is recorded",
        ),
        (
            "rubelet: {audit: {maxSiz: 5}}",
            "k.yaml:3:19: rubelet.audit.maxSiz: unknown field; did you mean \"maxSize\"?",
        ),
        (
            "rubelet: {socket: r.sock}",
            "k.yaml:3:11: rubelet.socket: must be the absolute path of a unix socket of at most 107 bytes, is \"r.sock\"",
        ),
    ]);
}

#[test]
fn a_file_that_is_not_a_kubelet_configuration_is_named() {
    for (text, expected) in [
        (
            "",
            "k.yaml: is empty; write one document with kind: KubeletConfiguration",
        ),
        (
            "# nothing\n",
            "k.yaml: is empty; write one document with kind: KubeletConfiguration",
        ),
        (
            "a: 1\n---\nb: 1\n",
            "k.yaml: has 2 documents; write one document with kind: KubeletConfiguration",
        ),
        (
            "maxPods: 3\n",
            "k.yaml:1:1: apiVersion: must be \"kubelet.config.k8s.io/v1beta1\", is missing",
        ),
        (
            "apiVersion: v1\nkind: Pod\n",
            "k.yaml:1:1: apiVersion: must be \"kubelet.config.k8s.io/v1beta1\", is \"v1\"",
        ),
        (
            "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: Pod\n",
            "k.yaml:2:1: kind: must be \"KubeletConfiguration\", is \"Pod\"",
        ),
        (
            "- a\n",
            "k.yaml:1:1: expected a mapping (KubeletConfiguration), found a list",
        ),
        ("maxPods: [", "k.yaml:1:10: unclosed bracket '['"),
    ] {
        let text = if text.is_empty() { "\n" } else { text };
        assert_eq!(error_of(text, "", &[]), expected, "{text}");
    }
}

#[test]
fn a_drop_in_needs_its_own_header_and_is_named() {
    let file = format!("{HEAD}maxPods: 3\n");
    assert_eq!(
        error_of(&file, "maxPods: 4\n", &[]),
        "d/1.conf:1:1: apiVersion: must be \"kubelet.config.k8s.io/v1beta1\", is missing"
    );
    assert_eq!(
        error_of(&file, &format!("{HEAD}maxPods: -4\n"), &[]),
        "d/1.conf:3:1: maxPods: must be 0 or more, is -4"
    );
}

#[test]
fn an_invalid_flag_is_named() {
    for (args, expected) in [
        (
            &["--max-pods=-1"][..],
            "--max-pods: must be 0 or more, is -1",
        ),
        (
            &["--max-pods", "x"],
            "--max-pods=x: expected a whole number from -2147483648 to 2147483647",
        ),
        (&["--max-pods"], "--max-pods needs a value: NUMBER"),
        (
            &["--maxpods=1"],
            "unknown flag --maxpods; did you mean --max-pods?",
        ),
        (&["--nonsense=1"], "unknown flag --nonsense"),
        (
            &["-config=x"],
            "unknown flag -config; did you mean --config?",
        ),
        (&["-x"], "unknown flag -x"),
        (
            &["run"],
            "unexpected argument \"run\"; every option begins with --",
        ),
        (
            &["--fail-swap-on", "false"],
            "unexpected argument \"false\"; every option begins with --",
        ),
        (
            &["--fail-swap-on=no"],
            "--fail-swap-on=no: expected true or false",
        ),
        (
            &["--bootstrap-kubeconfig=/etc/b"],
            "--bootstrap-kubeconfig=/etc/b: needs --kubeconfig, the file to which the kubeconfig with the certificate is written",
        ),
        (
            &["--cluster-domain=a", "--feature-gates=Nope=true"],
            "--feature-gates: unknown feature gate; Kubernetes 1.36 has no gate of this name",
        ),
        (
            &["--eviction-hard=memory.available=1Gi"],
            "--eviction-hard=memory.available=1Gi: expected signal<quantity, found \"memory.available=1Gi\"",
        ),
        (
            &["--sync-frequency=0"],
            "--sync-frequency: must be more than 0s",
        ),
        (
            &["--node-ip=a"],
            "--node-ip=a: expected an IP address, or one of each family",
        ),
        (
            &["--node-labels=kubernetes.io/role=x"],
            "--node-labels=kubernetes.io/role=x: \"kubernetes.io/role\": under kubernetes.io and k8s.io only these are allowed: beta.kubernetes.io/arch, beta.kubernetes.io/instance-type, beta.kubernetes.io/os, failure-domain.beta.kubernetes.io/region, failure-domain.beta.kubernetes.io/zone, kubernetes.io/arch, kubernetes.io/hostname, kubernetes.io/os, node.kubernetes.io/instance-type, topology.kubernetes.io/region, topology.kubernetes.io/zone, and kubelet.kubernetes.io/* and node.kubernetes.io/*",
        ),
        (
            &["--exit-on-lock-contention"],
            "--exit-on-lock-contention=true: needs --lock-file",
        ),
        (
            &["--cloud-provider=aws"],
            "--cloud-provider=aws: must be external or empty; in-tree cloud providers have been removed",
        ),
    ] {
        assert_eq!(error_of("", "", args), expected, "{args:?}");
    }
}

#[test]
fn an_error_shows_the_line_that_it_is_about() {
    let flags = parse_flags(std::iter::empty()).unwrap();
    let text = format!("{HEAD}maxPods: -1\n");
    let file = Some(("k.yaml", text.as_str()));
    let error = resolve(Sources {
        file,
        drop_ins: &[],
        flags: &flags,
    })
    .unwrap_err();
    assert_eq!(
        error.snippet.as_deref().unwrap(),
        "2 | kind: KubeletConfiguration\n3 | maxPods: -1\n  | ^"
    );
}
