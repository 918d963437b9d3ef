//! All events that Rubelet records: reason and message of each. Those of the kubelet are identical
//! to the kubelet's; tests of other crates compare recorded events with this table.
//!
//! Source of the rule: `pkg/kubelet/events/event.go` and the calls of its recorder in `pkg/kubelet` of
//! Kubernetes 1.36.

/// One kind of event. `{}` stands for any text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventText {
    /// Whether the event's type is Warning.
    pub warning: bool,
    /// `reason`.
    pub reason: &'static str,
    /// `message`.
    pub message: &'static str,
    /// Who has such an event.
    pub whose: Whose,
}

/// Who has an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// The kubelet.
    Kubelets,
    /// Rubelet alone.
    Own,
}

const fn normal(reason: &'static str, message: &'static str) -> EventText {
    EventText {
        warning: false,
        reason,
        message,
        whose: Whose::Kubelets,
    }
}

const fn warning(reason: &'static str, message: &'static str) -> EventText {
    EventText {
        warning: true,
        reason,
        message,
        whose: Whose::Kubelets,
    }
}

const fn own(warning: bool, reason: &'static str, message: &'static str) -> EventText {
    EventText {
        warning,
        reason,
        message,
        whose: Whose::Own,
    }
}

/// The table.
pub const EVENTS: &[EventText] = &[
    // Images.
    normal("Pulling", "Pulling image \"{}\""),
    normal(
        "Pulled",
        "Successfully pulled image \"{}\" in {} ({} including waiting). Image size: {} bytes.",
    ),
    normal(
        "Pulled",
        "Container image \"{}\" already present on machine and can be accessed by the pod",
    ),
    normal(
        "Pulled",
        "Container image \"{}\" already present on machine",
    ),
    normal("BackOff", "Back-off pulling image \"{}\""),
    warning("Failed", "Failed to pull image \"{}\": {}"),
    warning(
        "ErrImageNeverPull",
        "Container image \"{}\" is not present with pull policy of Never",
    ),
    warning(
        "InspectFailed",
        "Failed to apply default image tag \"{}\": {}",
    ),
    warning("InspectFailed", "Failed to inspect image \"{}\": {}"),
    warning(
        "FailedToRetrieveImagePullSecret",
        "Unable to retrieve some image pull secrets ({}); attempting to pull the image may not succeed.",
    ),
    // Containers.
    normal("Created", "Container created"),
    normal("Started", "Container started"),
    warning("Failed", "Error: {}"),
    normal("Killing", "Stopping container {}"),
    normal(
        "Killing",
        "Container {} definition changed, will be restarted",
    ),
    normal("Killing", "Container {} failed liveness probe"),
    normal(
        "Killing",
        "Container {} failed liveness probe, will be restarted",
    ),
    normal("Killing", "Container {} failed startup probe"),
    normal(
        "Killing",
        "Container {} failed startup probe, will be restarted",
    ),
    normal(
        "Killing",
        "Container {} is in unknown state, try killing it before restart",
    ),
    normal("Killing", "FailedPostStartHook"),
    warning(
        "BackOff",
        "Back-off restarting failed container {} in pod {}_{}({})",
    ),
    warning("FailedPostStartHook", "PostStartHook failed"),
    warning("FailedPreStopHook", "PreStopHook failed"),
    warning(
        "LifecycleHTTPFallback",
        "request to HTTPS lifecycle hook {} got HTTP response, retry with HTTP succeeded",
    ),
    warning("Unhealthy", "{} probe failed: {}"),
    warning("Unhealthy", "{} probe errored and resulted in {} state: {}"),
    warning("ProbeWarning", "{} probe warning: {}"),
    // Pods.
    normal(
        "SandboxChanged",
        "Pod sandbox changed, it will be killed and re-created.",
    ),
    warning("FailedCreatePodSandBox", "Failed to create pod sandbox: {}"),
    warning(
        "FailedCreatePodContainer",
        "unable to ensure pod container exists: {}",
    ),
    warning("NetworkNotReady", "network is not ready: {}"),
    warning("Failed", "error making pod data directories: {}"),
    warning(
        "FailedMount",
        "MountVolume.SetUp failed for volume \"{}\" : {}",
    ),
    warning("FailedKillPod", "error killing pod: {}"),
    normal(
        "DeadlineExceeded",
        "Pod was active on the node longer than the specified deadline",
    ),
    warning(
        "DNSConfigForming",
        "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver \
         line is: {}",
    ),
    warning(
        "DNSConfigForming",
        "Search Line limits were exceeded, some search paths have been omitted, the applied search \
         line is: {}",
    ),
    warning(
        "MissingClusterDNS",
        "pod: \"{}\". kubelet does not have ClusterDNS IP configured and cannot create Pod using \
         \"ClusterFirst\" policy. Falling back to \"Default\" policy.",
    ),
    // Admission.
    warning(
        "OutOf{}",
        "Node didn't have enough resource: {}, requested: {}, used: {}, capacity: {}",
    ),
    warning("{}", "Predicate {} failed: {}"),
    warning("Evicted", "The node had condition: [{}]. "),
    // Eviction.
    warning("EvictionThresholdMet", "Attempting to reclaim {}"),
    warning(
        "Evicted",
        "The node was low on resource: {}. Threshold quantity: {}, available: {}. ",
    ),
    warning(
        "Evicted",
        "The node was low on resource: {}. Threshold quantity: {}, available: {}. Container {} was \
         using {}, request is {}, has larger consumption of {}. ",
    ),
    warning(
        "Evicted",
        "Usage of EmptyDir volume \"{}\" exceeds the limit \"{}\". ",
    ),
    warning(
        "Evicted",
        "Pod ephemeral local storage usage exceeds the total limit of containers {}. ",
    ),
    warning(
        "Evicted",
        "Container {} exceeded its local ephemeral storage limit \"{}\". ",
    ),
    warning(
        "ExceededGracePeriod",
        "Container runtime did not kill the pod within specified grace period.",
    ),
    warning("SysctlForbidden", "forbidden sysctl: {}"),
    warning("AppArmor", "Cannot enforce AppArmor: {}"),
    warning(
        "PodOS{}",
        "Failed to admit pod as the {} doesn't match node {}",
    ),
    warning(
        "SupplementalGroupsPolicyNotSupported",
        "SupplementalGroupsPolicy=Strict is not supported in this node",
    ),
    warning(
        "NodeShutdown",
        "Pod was rejected as the node is shutting down.",
    ),
    warning("Preempting", "Preempted in order to admit critical pod"),
    // Resizes.
    warning("ResizeInfeasible", "Pod resize Infeasible: {}"),
    // The node.
    normal("Starting", "Starting kubelet."),
    normal("Node{}", "Node {} status is now: Node{}"),
    normal("Shutdown", "Shutdown manager detected shutdown event"),
    normal(
        "Shutdown",
        "Shutdown manager detected shutdown cancellation",
    ),
    warning(
        "SystemOOM",
        "System OOM encountered, victim process: {}, pid: {}",
    ),
    warning("SystemOOM", "System OOM encountered"),
    warning("Rebooted", "Node {} has been rebooted, boot id: {}"),
    normal(
        "NodeAllocatableEnforced",
        "Updated Node Allocatable limit across pods",
    ),
    normal(
        "NodeAllocatableEnforced",
        "Updated limits on {} reserved cgroup {}",
    ),
    warning(
        "FailedNodeAllocatableEnforcement",
        "Failed to update Node Allocatable Limits {}: {}",
    ),
    warning(
        "FailedNodeAllocatableEnforcement",
        "Failed to enforce {} Reserved Cgroup Limits on {}: {}",
    ),
    warning(
        "FailedNodeAllocatableEnforcement",
        "Failed to enforce {} Reserved Compressible Cgroup Limits on {}: {}",
    ),
    warning(
        "InvalidDiskCapacity",
        "invalid capacity {} on image filesystem",
    ),
    warning(
        "FreeDiskSpaceFailed",
        "Failed to garbage collect required amount of images. Attempted to free {} bytes, but only found {} bytes eligible to free.",
    ),
    warning("ImageGCFailed", "{}"),
    // Rubelet's own: the kubelet has no such event.
    own(false, "Killing", "Container {} is restarted on request"),
    own(
        true,
        "Failed",
        "Failed to record image pull intent for container image \"{}\": {}",
    ),
    own(true, "FailedCleanUp", "{}"),
    own(true, "FailedRemoveContainer", "error removing container {}"),
    own(true, "FailedRemoveSandbox", "error removing sandbox {}"),
    own(true, "ContainerEndNotTold", "{}"),
    own(true, "PodFeatureUnsupported", "{}"),
    own(true, "InvalidPod", "{}"),
    own(true, "RuntimeHangs", "{}"),
    own(false, "RuntimeAnswers", "{}"),
    own(true, "RuntimeSlow", "the container runtime is slow: {}"),
    own(
        false,
        "RuntimeNotSlow",
        "the container runtime has not been slow for a minute",
    ),
    own(
        false,
        "HostPortHeld",
        "host port {} is in use by pod {}; this pod starts when the port is released",
    ),
    own(
        true,
        "TaskDied",
        "the agent's task for this pod panicked and is restarted: {}",
    ),
    own(
        true,
        "Unconfirmed",
        "the API server did not confirm this pod, {}",
    ),
    own(
        true,
        "UnknownFields",
        "this node does not know these fields and runs the pod without them: {}",
    ),
    own(
        false,
        "RestartRequested",
        "Restart of container {} was asked for",
    ),
];

/// The row of an event; `None` if it has none.
#[must_use]
pub fn find(warning: bool, reason: &str, message: &str) -> Option<&'static EventText> {
    EVENTS.iter().find(|row| {
        row.warning == warning && fits(row.reason, reason) && fits(row.message, message)
    })
}

/// Whether a text matches a pattern.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split("{}");
    let Some(rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, between)) = parts.split_last() else {
        return rest.is_empty();
    };
    let mut rest = rest;
    for part in between {
        let Some((_, behind)) = rest.split_once(part) else {
            return false;
        };
        rest = behind;
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_stand_for_texts() {
        for (pattern, text, is) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("a{}", "ab", true),
            ("a{}", "a", true),
            ("{}b", "ab", true),
            ("{} in {}: {}", "x in y: z", true),
            ("{} in {}: {}", "x in y", false),
            ("{}", "", true),
            ("a{}c", "abd", false),
        ] {
            assert_eq!(fits(pattern, text), is, "{pattern} {text}");
        }
    }

    #[test]
    fn each_row_is_found_and_stands_once() {
        for row in EVENTS {
            let (reason, message) = (
                row.reason.replace("{}", "x"),
                row.message.replace("{}", "x"),
            );
            assert!(find(row.warning, &reason, &message).is_some(), "{row:?}");
            let same =
                |other: &&EventText| (other.reason, other.message) == (row.reason, row.message);
            assert_eq!(EVENTS.iter().filter(same).count(), 1, "{row:?}");
        }
        assert_eq!(find(true, "Created", "Container created"), None);
        assert_eq!(find(false, "Created", "created it"), None);
    }
}
