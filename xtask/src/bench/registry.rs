//! All benchmarks in one table.

/// The setup of a measurement; benchmarks of one group share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    /// Only the binary file.
    Binary,
    /// An agent without any pod.
    EmptyNode,
    /// An agent with 100 pods from a directory.
    HundredPods,
    /// The same runtime with 100 such pods, without an agent.
    RuntimeAlone,
    /// An agent with 100 pods whose containers are killed.
    Restarts,
    /// The same, while another program writes and syncs files on the same disk.
    RestartsDiskBusy,
    /// Plans only, without an agent.
    Plan,
    /// Relists of a model runtime.
    Reconcile,
    /// An agent with 1000 probes.
    Probes,
    /// An agent with pods that ignore SIGTERM.
    Stubborn,
    /// An agent with 100 pods of a model cluster.
    Joined,
    /// A model cluster and a model runtime.
    Churn,
    /// The embedded runtime alone, through its socket.
    EmbeddedPods,
    /// An agent with 100 pods on the embedded runtime.
    EmbeddedHundred,
    /// The same, with containers that are killed.
    EmbeddedRestarts,
    /// The same, while another program writes and syncs files on the same disk.
    EmbeddedRestartsDiskBusy,
    /// Pods of the embedded runtime that take over a host port from each other.
    EmbeddedTakeover,
    /// Pods of the embedded runtime that start while large volumes of others are filled.
    EmbeddedCopies,
    /// An agent with 1000 pods on the embedded runtime.
    EmbeddedThousand,
    /// Sessions through the kubelet API, on the embedded runtime.
    Sessions,
    /// The output of a container into a log that is rotated, on the embedded runtime.
    Logs,
    /// Ping and trace in network namespaces.
    Network,
}

/// The direction in which a figure improves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Better {
    /// Down.
    Smaller,
    /// Up.
    Larger,
    /// Without a goal: it shows how much of another number is not due to the agent.
    Neither,
}

/// One number.
#[derive(Debug)]
pub(super) struct Benchmark {
    /// The name on the command line and in the JSON output; its end is the unit.
    pub(super) name: &'static str,
    /// The unit for display.
    pub(super) unit: &'static str,
    /// The promised bound: a maximum, or a minimum where larger is better; nothing with
    /// [`Better::Neither`].
    pub(super) goal: f64,
    /// The direction in which it improves.
    pub(super) better: Better,
    /// Its setup.
    pub(super) group: Group,
    /// Its description.
    pub(super) about: &'static str,
}

/// The benchmarks, in the order in which they are printed.
pub(super) const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "binary_mib",
        unit: "MiB",
        goal: 25.0,
        better: Better::Smaller,
        group: Group::Binary,
        about: "size of the release binary",
    },
    Benchmark {
        name: "rss_mib_0",
        unit: "MiB",
        goal: 10.0,
        better: Better::Smaller,
        group: Group::EmptyNode,
        about: "memory of an agent without pods",
    },
    Benchmark {
        name: "start_100_s",
        unit: "s",
        goal: 13.0,
        better: Better::Smaller,
        group: Group::HundredPods,
        about: "from the start of the agent until 100 pods of its directory are ready",
    },
    Benchmark {
        name: "rss_mib_100",
        unit: "MiB",
        goal: 16.0,
        better: Better::Smaller,
        group: Group::HundredPods,
        about: "memory of the agent with 100 pods",
    },
    Benchmark {
        name: "rss_mib_100_1min",
        unit: "MiB",
        goal: 18.0,
        better: Better::Smaller,
        group: Group::HundredPods,
        about: "the same, a minute after the last pod is ready",
    },
    Benchmark {
        name: "rss_peak_mib_100",
        unit: "MiB",
        goal: 0.0,
        better: Better::Neither,
        group: Group::HundredPods,
        about: "the most memory of the agent while it starts 100 pods",
    },
    Benchmark {
        name: "pss_mib_100",
        unit: "MiB",
        goal: 0.0,
        better: Better::Neither,
        group: Group::HundredPods,
        about: "memory of the agent after that minute, with shared pages counted proportionally (PSS)",
    },
    Benchmark {
        name: "cpu_idle_pct_100",
        unit: "% of a core",
        goal: 0.2,
        better: Better::Smaller,
        group: Group::HundredPods,
        about: "CPU time of the agent over 60 s with 100 idle pods",
    },
    Benchmark {
        name: "runtime_cpu_idle_pct_100",
        unit: "% of a core",
        goal: 0.1,
        better: Better::Smaller,
        group: Group::HundredPods,
        about: "CPU time of containerd in the same 60 s",
    },
    Benchmark {
        name: "runtime_cpu_idle_alone_pct_100",
        unit: "% of a core",
        goal: 0.0,
        better: Better::Neither,
        group: Group::HundredPods,
        about: "CPU time of the same containerd with the same pods, over 60 s after the agent has exited",
    },
    Benchmark {
        name: "idle_rpcs_per_min_100",
        unit: "",
        goal: 20.0,
        better: Better::Smaller,
        group: Group::HundredPods,
        about: "calls of the agent to the runtime in the same 60 s",
    },
    Benchmark {
        name: "summary_ms_100",
        unit: "ms",
        goal: 15.0,
        better: Better::Smaller,
        group: Group::HundredPods,
        about: "one /stats/summary of 100 pods, the median of 9",
    },
    Benchmark {
        name: "adopt_100_ms",
        unit: "ms",
        goal: 500.0,
        better: Better::Smaller,
        group: Group::HundredPods,
        about: "from the start of the agent after kill -9 until 100 running pods are ready again",
    },
    Benchmark {
        name: "stop_100_s",
        unit: "s",
        goal: 5.0,
        better: Better::Smaller,
        group: Group::HundredPods,
        about: "from the removal of 100 manifests until no process of the pods runs",
    },
    Benchmark {
        name: "start_100_alone_s",
        unit: "s",
        goal: 0.0,
        better: Better::Neither,
        group: Group::RuntimeAlone,
        about: "starting such pods by CRI calls alone, on the same containerd without an agent",
    },
    Benchmark {
        name: "stop_100_alone_s",
        unit: "s",
        goal: 0.0,
        better: Better::Neither,
        group: Group::RuntimeAlone,
        about: "stopping them by CRI calls alone",
    },
    Benchmark {
        name: "kill_to_created_ms_p50",
        unit: "ms",
        goal: 35.0,
        better: Better::Smaller,
        group: Group::Restarts,
        about: "from SIGKILL of a container's process until the runtime shows its replacement \
                created, the median of 100",
    },
    Benchmark {
        name: "kill_to_created_ms_p99",
        unit: "ms",
        goal: 90.0,
        better: Better::Smaller,
        group: Group::Restarts,
        about: "the same, the 99th of 100",
    },
    Benchmark {
        name: "kill_to_running_ms_p50",
        unit: "ms",
        goal: 130.0,
        better: Better::Smaller,
        group: Group::Restarts,
        about: "from SIGKILL of a container's process until its replacement runs, with 100 pods, the median of 100",
    },
    Benchmark {
        name: "kill_to_running_ms_p99",
        unit: "ms",
        goal: 0.0,
        better: Better::Neither,
        group: Group::Restarts,
        about: "the same, the 99th of 100",
    },
    Benchmark {
        name: "kill_to_created_disk_busy_ms_p50",
        unit: "ms",
        goal: 60.0,
        better: Better::Smaller,
        group: Group::RestartsDiskBusy,
        about: "kill_to_created_ms while another program writes and syncs a gigabyte and trees of \
                small files on the same disk, the median of 100",
    },
    Benchmark {
        name: "kill_to_created_disk_busy_ms_p99",
        unit: "ms",
        goal: 0.0,
        better: Better::Neither,
        group: Group::RestartsDiskBusy,
        about: "the same, the 99th of 100",
    },
    Benchmark {
        name: "exit_event_to_sync_ms_p50",
        unit: "ms",
        goal: 3.0,
        better: Better::Smaller,
        group: Group::Restarts,
        about: "from the runtime's event of such an exit until the pod task begins to handle it, \
                the median of 100",
    },
    Benchmark {
        name: "exit_event_to_sync_ms_p99",
        unit: "ms",
        goal: 20.0,
        better: Better::Smaller,
        group: Group::Restarts,
        about: "the same, the 99th of 100",
    },
    Benchmark {
        name: "plan_ns_p50",
        unit: "ns",
        goal: 20_000.0,
        better: Better::Smaller,
        group: Group::Plan,
        about: "one plan of a pod with five containers, the median",
    },
    Benchmark {
        name: "reconcile_us_1000",
        unit: "us",
        goal: 5_000.0,
        better: Better::Smaller,
        group: Group::Reconcile,
        about: "one relist of 1000 pods with 3000 containers, without changes",
    },
    Benchmark {
        name: "probe_cpu_pct_1000",
        unit: "% of a core",
        goal: 10.0,
        better: Better::Smaller,
        group: Group::Probes,
        about: "CPU time of the agent over 60 s with 1000 HTTP probes, each every 10 s",
    },
    Benchmark {
        name: "stop_grace_error_ms_p99",
        unit: "ms",
        goal: 50.0,
        better: Better::Smaller,
        group: Group::Stubborn,
        about: "deviation of the time from SIGTERM to SIGKILL from the grace period, in 100 pods",
    },
    Benchmark {
        name: "joined_rss_mib_100",
        unit: "MiB",
        goal: 24.0,
        better: Better::Smaller,
        group: Group::Joined,
        about: "memory of the agent as a node of a cluster, with 100 pods",
    },
    Benchmark {
        name: "joined_cpu_idle_pct_100",
        unit: "% of a core",
        goal: 0.3,
        better: Better::Smaller,
        group: Group::Joined,
        about: "its CPU time over 60 s while idle",
    },
    Benchmark {
        name: "api_rpcs_per_min_idle_100",
        unit: "",
        goal: 8.0,
        better: Better::Smaller,
        group: Group::Joined,
        about: "its requests to the API server in the same 60 s",
    },
    Benchmark {
        name: "status_lag_ms_p50",
        unit: "ms",
        goal: 20.0,
        better: Better::Smaller,
        group: Group::Joined,
        about: "from SIGKILL of a container's process until the API server has received the patch of its \
                pod's status, the median of 100",
    },
    Benchmark {
        name: "status_lag_ms_p99",
        unit: "ms",
        goal: 80.0,
        better: Better::Smaller,
        group: Group::Joined,
        about: "the same, the 99th of 100",
    },
    Benchmark {
        name: "churn_pods_per_s",
        unit: "pods/s",
        goal: 200.0,
        better: Better::Larger,
        group: Group::Churn,
        about: "pods that are created, get ready and are deleted, on a model API server and a \
                model runtime",
    },
    Benchmark {
        name: "embedded_pod_start_ms_p50",
        unit: "ms",
        goal: 40.0,
        better: Better::Smaller,
        group: Group::EmbeddedPods,
        about: "from RunPodSandbox until the one container of a pod on the bridge is started, the \
                median of 100",
    },
    Benchmark {
        name: "embedded_pod_start_ms_p99",
        unit: "ms",
        goal: 120.0,
        better: Better::Smaller,
        group: Group::EmbeddedPods,
        about: "the same, the 99th of 100",
    },
    Benchmark {
        name: "embedded_exec_ms_p50",
        unit: "ms",
        goal: 15.0,
        better: Better::Smaller,
        group: Group::EmbeddedPods,
        about: "a command in a running container, from the call to its response, the median of 100",
    },
    Benchmark {
        name: "shim_private_kib",
        unit: "KiB",
        goal: 1536.0,
        better: Better::Smaller,
        group: Group::EmbeddedPods,
        about: "private memory of a shim with one container, the median of 100",
    },
    Benchmark {
        name: "embedded_start_100_s",
        unit: "s",
        goal: 4.0,
        better: Better::Smaller,
        group: Group::EmbeddedHundred,
        about: "from the start of the agent until 100 pods are ready on the embedded runtime",
    },
    Benchmark {
        name: "embedded_rss_mib_100",
        unit: "MiB",
        goal: 20.0,
        better: Better::Smaller,
        group: Group::EmbeddedHundred,
        about: "memory of the agent with them, runtime included",
    },
    Benchmark {
        name: "embedded_cpu_idle_pct_100",
        unit: "% of a core",
        goal: 0.2,
        better: Better::Smaller,
        group: Group::EmbeddedHundred,
        about: "its CPU time over 60 s while idle",
    },
    Benchmark {
        name: "embedded_summary_ms_100",
        unit: "ms",
        goal: 15.0,
        better: Better::Smaller,
        group: Group::EmbeddedHundred,
        about: "one /stats/summary of 100 pods, the median of 9",
    },
    Benchmark {
        name: "embedded_stop_100_s",
        unit: "s",
        goal: 5.0,
        better: Better::Smaller,
        group: Group::EmbeddedHundred,
        about: "from the removal of 100 manifests until no process of the pods runs",
    },
    Benchmark {
        name: "embedded_kill_to_created_ms_p50",
        unit: "ms",
        goal: 25.0,
        better: Better::Smaller,
        group: Group::EmbeddedRestarts,
        about: "from SIGKILL of a container's process until its replacement is created, the median of \
                100",
    },
    Benchmark {
        name: "embedded_kill_to_running_ms_p50",
        unit: "ms",
        goal: 15.0,
        better: Better::Smaller,
        group: Group::EmbeddedRestarts,
        about: "the same, until its replacement runs",
    },
    Benchmark {
        name: "embedded_kill_to_running_ms_p99",
        unit: "ms",
        goal: 0.0,
        better: Better::Neither,
        group: Group::EmbeddedRestarts,
        about: "the same, the 99th of 100",
    },
    Benchmark {
        name: "embedded_kill_to_created_disk_busy_ms_p50",
        unit: "ms",
        goal: 0.0,
        better: Better::Neither,
        group: Group::EmbeddedRestartsDiskBusy,
        about: "embedded_kill_to_created_ms while another program writes and syncs a gigabyte and \
                trees of small files on the same disk, the median of 100",
    },
    Benchmark {
        name: "embedded_kill_to_created_disk_busy_ms_p99",
        unit: "ms",
        goal: 40.0,
        better: Better::Smaller,
        group: Group::EmbeddedRestartsDiskBusy,
        about: "the same, the 99th of 100",
    },
    Benchmark {
        name: "hostport_takeover_ms_p50",
        unit: "ms",
        goal: 60.0,
        better: Better::Smaller,
        group: Group::EmbeddedTakeover,
        about: "from the stop of a pod's sandbox, which releases its host port, until the pod that waits for the \
                port responds there, the median of 30",
    },
    Benchmark {
        name: "other_pods_start_ms_p99_beside_copies",
        unit: "ms",
        goal: 0.0,
        better: Better::Neither,
        group: Group::EmbeddedCopies,
        about: "from a pod's manifest until its container runs, while 16 pods of an image with 2 GiB below a \
                declared VOLUME are being created (less on a disk with less than 68 GiB free), the 99th of 100",
    },
    Benchmark {
        name: "embedded_start_1000_s",
        unit: "s",
        goal: 60.0,
        better: Better::Smaller,
        group: Group::EmbeddedThousand,
        about: "from the start of the agent until 1000 pods are ready on the embedded runtime",
    },
    Benchmark {
        name: "exec_session_ms_p50",
        unit: "ms",
        goal: 12.0,
        better: Better::Smaller,
        group: Group::Sessions,
        about: "from a request for exec through the kubelet API, with its TLS handshake, to the first byte of \
                `echo`, the median of 200",
    },
    Benchmark {
        name: "exec_mib_s",
        unit: "MiB/s",
        goal: 250.0,
        better: Better::Larger,
        group: Group::Sessions,
        about: "1 GiB through the standard output of a command, through the kubelet API with TLS",
    },
    Benchmark {
        name: "portforward_mib_s",
        unit: "MiB/s",
        goal: 300.0,
        better: Better::Larger,
        group: Group::Sessions,
        about: "1 GiB from a forwarded port of a pod, through the kubelet API with TLS",
    },
    Benchmark {
        name: "portforward_rtt_us_p50",
        unit: "us",
        goal: 150.0,
        better: Better::Smaller,
        group: Group::Sessions,
        about: "round trip of one byte through a forwarded port, over that to the pod's address, the median \
                of 2000",
    },
    Benchmark {
        name: "session_kib",
        unit: "KiB",
        goal: 48.0,
        better: Better::Smaller,
        group: Group::Sessions,
        about: "private memory of the agent for each of 1000 idle sessions of `cat`",
    },
    Benchmark {
        name: "sessions_1000_ok",
        unit: "",
        goal: 1000.0,
        better: Better::Larger,
        group: Group::Sessions,
        about: "of 1000 such sessions, those that still respond afterwards",
    },
    Benchmark {
        name: "sessions_10000_left",
        unit: "",
        goal: 0.0,
        better: Better::Smaller,
        group: Group::Sessions,
        about: "descriptors of the agent and its shims, and processes in the container, that are left after \
                10,000 sessions, of which every fourth is closed by its client",
    },
    Benchmark {
        name: "sessions_10000_kib",
        unit: "KiB",
        goal: 1024.0,
        better: Better::Smaller,
        group: Group::Sessions,
        about: "private memory of the agent that these sessions add",
    },
    Benchmark {
        name: "log_rotate_mib_s",
        unit: "MiB/s",
        goal: 300.0,
        better: Better::Larger,
        group: Group::Logs,
        about: "4 GiB of output of a container, in lines of 128 bytes, with the kubelet's log limits",
    },
    Benchmark {
        name: "ping_overhead_vs_iputils",
        unit: "",
        goal: 1.0,
        better: Better::Smaller,
        group: Group::Network,
        about: "median round trip on loopback that `rubelet net ping` shows, over that of iputils-ping",
    },
    Benchmark {
        name: "ping_pps",
        unit: "/s",
        goal: 100_000.0,
        better: Better::Larger,
        group: Group::Network,
        about: "echo requests on loopback that one core sends and receives replies to",
    },
    Benchmark {
        name: "trace_30_hops_ms",
        unit: "ms",
        goal: 700.0,
        better: Better::Smaller,
        group: Group::Network,
        about: "a trace of 30 hops, each 10 ms further away, with three probes to each",
    },
];
