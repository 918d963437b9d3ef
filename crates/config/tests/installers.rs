//! Files and flags of common installers are accepted without warnings.

use rubelet_config::{FlagError, Flags, Invocation, Resolved, Sources, parse_flags, resolve};

const KUBEADM: &str = "
apiVersion: kubelet.config.k8s.io/v1beta1
authentication:
  anonymous:
    enabled: false
  webhook:
    cacheTTL: 0s
    enabled: true
  x509:
    clientCAFile: /etc/kubernetes/pki/ca.crt
authorization:
  mode: Webhook
  webhook:
    cacheAuthorizedTTL: 0s
    cacheUnauthorizedTTL: 0s
cgroupDriver: systemd
clusterDNS:
- 10.96.0.10
clusterDomain: cluster.local
containerRuntimeEndpoint: \"\"
cpuManagerReconcilePeriod: 0s
crashLoopBackOff: {}
evictionPressureTransitionPeriod: 0s
fileCheckFrequency: 0s
healthzBindAddress: 127.0.0.1
healthzPort: 10248
httpCheckFrequency: 0s
imageMaximumGCAge: 0s
imageMinimumGCAge: 0s
kind: KubeletConfiguration
logging:
  flushFrequency: 0
  options:
    json:
      infoBufferSize: \"0\"
    text:
      infoBufferSize: \"0\"
  verbosity: 0
memorySwap: {}
nodeStatusReportFrequency: 0s
nodeStatusUpdateFrequency: 0s
resolvConf: /run/systemd/resolve/resolv.conf
rotateCertificates: true
runtimeRequestTimeout: 0s
shutdownGracePeriod: 0s
shutdownGracePeriodCriticalPods: 0s
staticPodPath: /etc/kubernetes/manifests
streamingConnectionIdleTimeout: 0s
syncFrequency: 0s
volumeStatsAggPeriod: 0s
";

const KIND: &str = "
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: systemd
cgroupRoot: /kubelet
failSwapOn: false
imageGCHighThresholdPercent: 100
evictionHard:
  nodefs.available: \"0%\"
  nodefs.inodesFree: \"0%\"
  imagefs.available: \"0%\"
featureGates: {}
";

const K3S_DEFAULTS: &str = "
address: 0.0.0.0
apiVersion: kubelet.config.k8s.io/v1beta1
authentication:
  anonymous:
    enabled: false
  webhook:
    cacheTTL: 2m0s
    enabled: true
  x509:
    clientCAFile: /var/lib/rancher/k3s/agent/client-ca.crt
authorization:
  mode: Webhook
  webhook:
    cacheAuthorizedTTL: 5m0s
    cacheUnauthorizedTTL: 30s
cgroupDriver: systemd
clusterDNS:
- 10.43.0.10
clusterDomain: cluster.local
containerRuntimeEndpoint: unix:///run/k3s/containerd/containerd.sock
evictionHard:
  imagefs.available: 5%
  nodefs.available: 5%
evictionMinimumReclaim:
  imagefs.available: 10%
  nodefs.available: 10%
failSwapOn: false
healthzBindAddress: 127.0.0.1
imageServiceEndpoint: unix:///run/k3s/containerd/containerd.sock
kind: KubeletConfiguration
logging:
  flushFrequency: 5s
  format: text
  options:
    json:
      infoBufferSize: \"0\"
    text:
      infoBufferSize: \"0\"
  verbosity: 0
podLogsDir: /var/log/pods
readOnlyPort: 0
resolvConf: /etc/resolv.conf
serializeImagePulls: false
staticPodPath: /var/lib/rancher/k3s/agent/pod-manifests
streamingConnectionIdleTimeout: 4h0m0s
tlsCertFile: /var/lib/rancher/k3s/agent/serving-kubelet.crt
tlsPrivateKeyFile: /var/lib/rancher/k3s/agent/serving-kubelet.key
";

fn flags(args: &str) -> Flags {
    parse_flags(args.split_whitespace().map(str::to_owned))
        .unwrap_or_else(|error| panic!("{error}"))
}

fn read(file: Option<&str>, drop_ins: &[(String, String)], flags: &Flags) -> Resolved {
    resolve(Sources {
        file: file.map(|text| ("config.yaml", text)),
        drop_ins,
        flags,
    })
    .unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn kubeadms_file_and_flags() {
    let flags = flags(
        "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf \
         --kubeconfig=/etc/kubernetes/kubelet.conf --config=/var/lib/kubelet/config.yaml \
         --container-runtime-endpoint=unix:///var/run/containerd/containerd.sock \
         --pod-infra-container-image=pause:3.9 --hostname-override=a \
         --register-with-taints=node-role.kubernetes.io/control-plane:NoSchedule",
    );
    let resolved = read(Some(KUBEADM), &[], &flags);
    let config = &resolved.config;
    assert_eq!(config.static_pod_path, "/etc/kubernetes/manifests");
    assert_eq!(
        config.container_runtime_endpoint,
        "unix:///var/run/containerd/containerd.sock"
    );
    assert_eq!(config.sync_frequency.as_secs(), 60);
    assert_eq!(config.logging.flush_frequency.as_secs(), 5);
    assert_eq!(
        config
            .crash_loop_back_off
            .max_container_restart_period
            .as_secs(),
        300
    );
    assert_eq!(
        config.register_with_taints[0].key,
        "node-role.kubernetes.io/control-plane"
    );
    assert_eq!(resolved.warnings.len(), 1, "{:?}", resolved.warnings);
}

#[test]
fn kinds_file_and_flags() {
    let flags = flags(
        "--config=/var/lib/kubelet/config.yaml --node-ip=172.18.0.2 --node-labels= \
         --container-runtime-endpoint=unix:///run/containerd/containerd.sock \
         --provider-id=kind://docker/kind/kind-control-plane \
         --runtime-cgroups=/system.slice/containerd.service",
    );
    let resolved = read(Some(KIND), &[], &flags);
    assert_eq!(resolved.config.cgroup_root, "/kubelet");
    assert!(!resolved.config.fail_swap_on);
    assert_eq!(
        resolved.config.provider_id,
        "kind://docker/kind/kind-control-plane"
    );
    assert_eq!(resolved.config.eviction_hard.len(), 3);
}

#[test]
fn k3s_drop_ins_and_flags() {
    let flags = flags(
        "--cloud-provider=external --config-dir=/var/lib/rancher/k3s/agent/etc/kubelet.conf.d \
         --containerd=/run/k3s/containerd/containerd.sock --hostname-override=node \
         --node-ip=10.0.0.5 --node-labels= --read-only-port=0",
    );
    let drop_ins = [("00-k3s-defaults.conf".to_owned(), K3S_DEFAULTS.to_owned())];
    let resolved = read(None, &drop_ins, &flags);
    assert_eq!(
        resolved.config.static_pod_path,
        "/var/lib/rancher/k3s/agent/pod-manifests"
    );
    assert_eq!(
        resolved.config.image_service_endpoint,
        "unix:///run/k3s/containerd/containerd.sock"
    );
    assert!(!resolved.config.serialize_image_pulls);
    assert_eq!(
        resolved.origins.of("failSwapOn").to_string(),
        "drop-in 00-k3s-defaults.conf:28"
    );
}

#[test]
fn flags_of_an_older_k3s() {
    let flags = flags(
        "--address=0.0.0.0 --anonymous-auth=false --authentication-token-webhook=true \
         --authorization-mode=Webhook --cgroup-driver=cgroupfs \
         --client-ca-file=/var/lib/rancher/k3s/agent/client-ca.crt --cloud-provider=external \
         --cluster-dns=10.43.0.10 --cluster-domain=cluster.local \
         --container-runtime-endpoint=unix:///run/k3s/containerd/containerd.sock \
         --eviction-hard=imagefs.available<5%,nodefs.available<5% \
         --eviction-minimum-reclaim=imagefs.available=10%,nodefs.available=10% \
         --fail-swap-on=false --healthz-bind-address=127.0.0.1 --hostname-override=node \
         --node-ip=10.0.0.5 --node-labels= --pod-manifest-path=/m --read-only-port=0 \
         --resolv-conf=/run/systemd/resolve/resolv.conf --serialize-image-pulls=false \
         --tls-cert-file=/c --tls-private-key-file=/k --register-with-taints=a=b:NoExecute",
    );
    let resolved = read(None, &[], &flags);
    assert_eq!(resolved.config.eviction_hard["nodefs.available"], "5%");
    assert_eq!(resolved.config.register_with_taints[0].value, "b");
    assert_eq!(resolved.config.static_pod_path, "/m");
}

#[test]
fn each_installer_starts_a_node_of_a_cluster() {
    for (installer, line, bootstrap) in [
        (
            "kubeadm",
            "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf \
             --kubeconfig=/etc/kubernetes/kubelet.conf --config=/var/lib/kubelet/config.yaml \
             --container-runtime-endpoint=unix:///run/containerd/containerd.sock \
             --pod-infra-container-image=registry.k8s.io/pause:3.10",
            Some("/etc/kubernetes/bootstrap-kubelet.conf"),
        ),
        (
            "kubeadm before 1.27",
            "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf \
             --kubeconfig=/etc/kubernetes/kubelet.conf --config=/var/lib/kubelet/config.yaml \
             --cgroup-driver=systemd --network-plugin=cni \
             --pod-infra-container-image=registry.k8s.io/pause:3.6",
            None,
        ),
        (
            "kind",
            "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf \
             --kubeconfig=/etc/kubernetes/kubelet.conf --config=/var/lib/kubelet/config.yaml \
             --container-runtime-endpoint=unix:///run/containerd/containerd.sock \
             --node-ip=172.18.0.3 --node-labels= \
             --pod-infra-container-image=registry.k8s.io/pause:3.10 \
             --provider-id=kind://docker/kind/kind-worker \
             --runtime-cgroups=/system.slice/containerd.service",
            Some("/etc/kubernetes/bootstrap-kubelet.conf"),
        ),
        (
            "k3s",
            "--cloud-provider=external --config-dir=/var/lib/rancher/k3s/agent/etc/kubelet.conf.d \
             --containerd=/run/k3s/containerd/containerd.sock --hostname-override=node \
             --kubeconfig=/var/lib/rancher/k3s/agent/kubelet.kubeconfig --node-ip=10.0.0.5 \
             --node-labels= --read-only-port=0",
            None,
        ),
    ] {
        let args = line.split_whitespace().map(str::to_owned);
        let flags = match parse_flags(args) {
            Ok(flags) => flags,
            Err(error) if line.contains("--network-plugin") => {
                // Kubernetes removed this flag in 1.24; a kubelet fails here as well.
                assert_eq!(error.to_string(), "unknown flag --network-plugin");
                continue;
            }
            Err(error) => panic!("{installer}: {error}"),
        };
        assert!(flags.kubeconfig().is_some(), "{installer}");
        assert_eq!(flags.bootstrap_kubeconfig(), bootstrap, "{installer}");
        let k3s = [("00-k3s-defaults.conf".to_owned(), K3S_DEFAULTS.to_owned())];
        let (file, drop_ins) = match flags.config() {
            Some(_) => (Some(KUBEADM), &[][..]),
            None => (None, &k3s[..]),
        };
        let resolved = read(file, drop_ins, &flags);
        assert!(resolved.joined, "{installer}");
        let config = &resolved.config;
        assert!(!config.authentication.anonymous.enabled, "{installer}");
        assert!(config.authentication.webhook.enabled, "{installer}");
        assert_eq!(config.authorization.mode, "Webhook", "{installer}");
        let address = resolved.secure_address().unwrap().unwrap();
        assert_eq!(address.to_string(), "0.0.0.0:10250", "{installer}");
        assert_eq!(resolved.read_only_address(), None, "{installer}");
    }
}

#[test]
fn a_node_set_up_for_the_kubelet_keeps_its_runtime() {
    let joins = "--kubeconfig=/etc/kubernetes/kubelet.conf";
    let kubeadms = "--config=/var/lib/kubelet/config.yaml";
    let containerd = "unix:///run/containerd/containerd.sock";
    for (line, endpoint, as_kubelet, settled) in [
        ("", "", false, ""),
        ("", "", true, containerd),
        (joins, "", false, ""),
        (joins, "", true, containerd),
        (&format!("{joins} {kubeadms}"), "", false, containerd),
        (kubeadms, "", false, ""),
        (
            &format!("{joins} {kubeadms}"),
            "unix:///run/crio/crio.sock",
            true,
            "unix:///run/crio/crio.sock",
        ),
        (&format!("{joins} {kubeadms}"), "embedded", true, ""),
    ] {
        let flag = format!("--container-runtime-endpoint={endpoint}");
        let given = (!endpoint.is_empty()).then_some(flag);
        let args = line.split_whitespace().map(str::to_owned).chain(given);
        let flags = parse_flags(args).unwrap();
        let mut resolved = read(flags.config().map(|_| KUBEADM), &[], &flags);
        let invocation = Invocation {
            as_kubelet,
            file: flags.config(),
        };
        let kubelets = resolved.resolve_runtime_endpoint(invocation);
        assert_eq!(
            resolved.config.container_runtime_endpoint, settled,
            "{line}"
        );
        assert_eq!(
            kubelets,
            endpoint.is_empty() && !settled.is_empty(),
            "{line}"
        );
    }
}

#[test]
fn a_bootstrap_kubeconfig_alone_is_refused() {
    let error = parse_flags(["--bootstrap-kubeconfig=/b".to_owned()].into_iter()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "--bootstrap-kubeconfig=/b: needs --kubeconfig, the file to which the kubeconfig with the certificate is written"
    );
    assert!(matches!(error, FlagError::BadValue { .. }));
    assert!(parse_flags(["--kubeconfig=".to_owned()].into_iter()).is_ok());
}
