//! What a benchmark is.

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
    /// An agent of a model cluster whose node runs out of memory.
    Eviction,
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
