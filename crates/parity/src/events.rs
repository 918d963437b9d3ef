//! Events of the kubelet that Rubelet does not record. Those that it records are in
//! [`crate::event_text`].
//!
//! Source: `pkg/kubelet/events/event.go` and the calls of its recorder in `pkg/kubelet` of Kubernetes 1.36.

use super::row::{ParityRow, differs, not_yet};

/// Reason and message of each, or only the reason if it has several messages.
pub(crate) const MISSING_EVENTS: &[ParityRow] = &[
    not_yet("AlreadyMountedVolume", "no volumes of CSI drivers"),
    differs(
        "CgroupV1",
        "the same is a warning in the log; failCgroupV1 is true by default",
    ),
    differs(
        "ContainerGCFailed",
        "each removal that fails has its own event",
    ),
    differs(
        "Failed: Internal PreCreateContainer hook failed: {}",
        "only plugins for CPUs, memory and devices have such hooks",
    ),
    differs(
        "Failed: Internal PreStartContainer hook failed: {}",
        "only plugins for CPUs, memory and devices have such hooks",
    ),
    not_yet("FailedMapVolume", "no block volumes"),
    differs(
        "FailedMount: Unable to attach or mount volumes: {}",
        "the event of the volume that fails says more",
    ),
    not_yet(
        "FailedMountOnFilesystemMismatch",
        "no volumes of CSI drivers",
    ),
    differs(
        "FailedNodeDeclaredFeaturesCheck",
        "a pod is rejected for the field that the node lacks, with PodFeatureUnsupported",
    ),
    differs(
        "FailedPodSandBoxStatus: Unable to get pod sandbox status: {}",
        "the next inspection tries again, and the log says it",
    ),
    not_yet("FailedPrepareDynamicResources", "no devices are allocated"),
    differs(
        "FailedSync: error determining status: {}",
        "statuses come from a list that is checked; see pleg.md",
    ),
    differs(
        "FailedValidation: Error validating pod {} from {} due to duplicate pod name {}, ignoring",
        "a manifest of a name that is taken is refused with its file and line",
    ),
    not_yet(
        "FileSystemResizeFailed, FileSystemResizeSuccessful",
        "no volumes of CSI drivers",
    ),
    differs(
        "InvalidImageID: ImageID is not valid, skipping, image: {}",
        "such an image is listed by its names",
    ),
    differs(
        "KubeletSetupFailed",
        "a start that fails ends with one error and the exit code 1",
    ),
    differs(
        "NodeSchedulable, NodeNotSchedulable",
        "spec.unschedulable is not the node's; kubectl shows who changed it",
    ),
    differs(
        "PossibleMemoryBackedVolumesOnDisk",
        "a tmpfs without noswap on a node with swap is a warning in the log",
    ),
    not_yet(
        "ResizeCompleted, ResizeDeferred, ResizeError, ResizeStarted",
        "pods are not resized in place",
    ),
    not_yet(
        "SuccessfulAttachVolume, FailedAttachVolume",
        "no volumes of CSI drivers",
    ),
    differs(
        "SuccessfulMountVolume",
        "one event for each volume of each pod; the log has it",
    ),
    not_yet(
        "VolumePermissionChangeInProgress",
        "volumes with many files are not measured",
    ),
    not_yet(
        "VolumeResizeFailed, VolumeResizeSuccessful",
        "no volumes of CSI drivers",
    ),
];
