//! All benchmarks in one table.

/// What has to be set up for a measurement; benchmarks of one group share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    /// Nothing but the file.
    Binary,
    /// An agent without any pod.
    EmptyNode,
    /// An agent with 100 pods from a folder.
    HundredPods,
    /// An agent with 100 pods whose containers are killed.
    Restarts,
    /// Decisions alone, without an agent.
    Plan,
    /// Relists of a model runtime.
    Reconcile,
    /// An agent with 1000 probes.
    Probes,
    /// An agent with pods that do not end at SIGTERM.
    Stubborn,
}

/// One number. Smaller is better, for all of them.
#[derive(Debug)]
pub(super) struct Benchmark {
    /// The name on the command line and in the JSON output; its end is the unit.
    pub(super) name: &'static str,
    /// The unit as a person writes it.
    pub(super) unit: &'static str,
    /// The most that is promised.
    pub(super) goal: f64,
    /// What is set up for it.
    pub(super) group: Group,
    /// What it says.
    pub(super) about: &'static str,
}

/// The benchmarks, in the order in which they are printed.
pub(super) const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "binary_mib",
        unit: "MiB",
        goal: 25.0,
        group: Group::Binary,
        about: "size of the release binary",
    },
    Benchmark {
        name: "rss_mib_0",
        unit: "MiB",
        goal: 10.0,
        group: Group::EmptyNode,
        about: "memory of an agent without pods",
    },
    Benchmark {
        name: "start_100_s",
        unit: "s",
        goal: 13.0,
        group: Group::HundredPods,
        about: "from the start of the agent until 100 pods of its folder are ready",
    },
    Benchmark {
        name: "rss_mib_100",
        unit: "MiB",
        goal: 16.0,
        group: Group::HundredPods,
        about: "memory of the agent with 100 pods",
    },
    Benchmark {
        name: "cpu_idle_pct_100",
        unit: "% of a core",
        goal: 0.2,
        group: Group::HundredPods,
        about: "processor time of the agent over 60 s in which nothing happens to 100 pods",
    },
    Benchmark {
        name: "runtime_cpu_idle_pct_100",
        unit: "% of a core",
        goal: 0.1,
        group: Group::HundredPods,
        about: "processor time of containerd in the same 60 s",
    },
    Benchmark {
        name: "idle_rpcs_per_min_100",
        unit: "",
        goal: 20.0,
        group: Group::HundredPods,
        about: "calls of the agent to the runtime in the same 60 s",
    },
    Benchmark {
        name: "adopt_100_ms",
        unit: "ms",
        goal: 500.0,
        group: Group::HundredPods,
        about: "from the start of the agent after kill -9 until 100 running pods are ready again",
    },
    Benchmark {
        name: "stop_100_s",
        unit: "s",
        goal: 5.0,
        group: Group::HundredPods,
        about: "from the removal of 100 manifests until nothing of the pods runs",
    },
    Benchmark {
        name: "kill_to_created_ms_p50",
        unit: "ms",
        goal: 35.0,
        group: Group::Restarts,
        about: "from SIGKILL of a container's process until the runtime shows its replacement \
                created, the median of 100",
    },
    Benchmark {
        name: "kill_to_created_ms_p99",
        unit: "ms",
        goal: 90.0,
        group: Group::Restarts,
        about: "the same, the 99th of 100",
    },
    Benchmark {
        name: "exit_event_to_sync_ms_p50",
        unit: "ms",
        goal: 3.0,
        group: Group::Restarts,
        about: "from the runtime's event of such an end until the pod's task begins to act, the \
                median of 100",
    },
    Benchmark {
        name: "exit_event_to_sync_ms_p99",
        unit: "ms",
        goal: 20.0,
        group: Group::Restarts,
        about: "the same, the 99th of 100",
    },
    Benchmark {
        name: "plan_ns_p50",
        unit: "ns",
        goal: 20_000.0,
        group: Group::Plan,
        about: "one plan of a pod with five containers, the median",
    },
    Benchmark {
        name: "reconcile_us_1000",
        unit: "us",
        goal: 5_000.0,
        group: Group::Reconcile,
        about: "one relist of 1000 pods with 3000 containers of which nothing has changed",
    },
    Benchmark {
        name: "probe_cpu_pct_1000",
        unit: "% of a core",
        goal: 10.0,
        group: Group::Probes,
        about: "processor time of the agent over 60 s with 1000 http probes, each every 10 s",
    },
    Benchmark {
        name: "stop_grace_error_ms_p99",
        unit: "ms",
        goal: 50.0,
        group: Group::Stubborn,
        about: "from SIGTERM to SIGKILL against the grace that was asked for, in 100 pods",
    },
];
