//! The calls that can fail or hang.

pub(super) const CALLS: [&str; 13] = [
    "RunPodSandbox",
    "CreateContainer",
    "StartContainer",
    "StopContainer",
    "StopPodSandbox",
    "RemoveContainer",
    "RemovePodSandbox",
    "ContainerStatus",
    "PodSandboxStatus",
    "ListContainers",
    "ListPodSandbox",
    "ImageStatus",
    "ExecSync",
];

pub(super) const LISTS: [&str; 2] = ["ListPodSandbox", "ListContainers"];
