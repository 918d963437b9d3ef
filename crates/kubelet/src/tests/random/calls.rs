//! The calls that fail or hang now and then.

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
