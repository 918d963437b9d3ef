//! `securityContext` of pods and containers.

/// `securityContext` of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodSecurity {
    /// What a container may override.
    pub shared: SharedSecurity,
    /// `fsGroup`: owner group of volumes that support it, and a supplemental group.
    pub fs_group: Option<i64>,
    /// `fsGroupChangePolicy` is `OnRootMismatch`.
    pub fs_group_on_root_mismatch: bool,
    /// `supplementalGroups`.
    pub supplemental_groups: Vec<i64>,
    /// `supplementalGroupsPolicy` is `Strict`.
    pub supplemental_groups_strict: bool,
    /// `sysctls`: name and value.
    pub sysctls: Vec<(Box<str>, Box<str>)>,
}

/// The users and groups of a pod with a user namespace: its IDs begin at 0 inside and at `first`
/// outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserRange {
    /// The ID of the host that is root inside.
    pub first: u32,
    /// How many.
    pub length: u32,
}

/// Fields that are in both contexts; a container's value wins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SharedSecurity {
    /// `runAsUser`.
    pub run_as_user: Option<i64>,
    /// `runAsGroup`.
    pub run_as_group: Option<i64>,
    /// `runAsNonRoot`.
    pub run_as_non_root: Option<bool>,
    /// `seccompProfile`.
    pub seccomp: Option<Profile>,
    /// `appArmorProfile`.
    pub apparmor: Option<Profile>,
    /// `seLinuxOptions`.
    pub selinux: Option<SeLinux>,
}

/// `securityContext` of a container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerSecurity {
    /// What overrides the pod's context.
    pub shared: SharedSecurity,
    /// `privileged`.
    pub privileged: bool,
    /// `allowPrivilegeEscalation`; `None` means allowed.
    pub allow_privilege_escalation: Option<bool>,
    /// `readOnlyRootFilesystem`.
    pub read_only_root: bool,
    /// `capabilities.add`.
    pub capabilities_add: Vec<Box<str>>,
    /// `capabilities.drop`.
    pub capabilities_drop: Vec<Box<str>>,
    /// `procMount` is `Unmasked`.
    pub proc_unmasked: bool,
}

/// A seccomp or AppArmor profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Profile {
    /// No confinement.
    Unconfined,
    /// The runtime's default.
    RuntimeDefault,
    /// A profile of this host: a path below the seccomp directory, or the name of a loaded profile.
    Localhost(Box<str>),
}

/// `seLinuxOptions`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeLinux {
    /// `user`.
    pub user: Box<str>,
    /// `role`.
    pub role: Box<str>,
    /// `type`.
    pub kind: Box<str>,
    /// `level`.
    pub level: Box<str>,
}
