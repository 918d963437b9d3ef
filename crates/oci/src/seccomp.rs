//! Seccomp filters by system call names; they are compiled elsewhere.

use serde::{Deserialize, Serialize};

use crate::nullable::nullable;

/// `linux.seccomp`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Seccomp {
    /// The action for calls that no rule matches.
    pub default_action: Action,
    /// The error number of `default_action`, if it has one; `None` is `EPERM`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_errno_ret: Option<u32>,
    /// Architectures whose calls are filtered by the rules. Empty is the machine's own.
    #[serde(
        default,
        deserialize_with = "nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub architectures: Vec<Architecture>,
    /// `SECCOMP_FILTER_FLAG_LOG`, `…_SPEC_ALLOW`, `…_TSYNC`, `…_WAIT_KILLABLE_RECV`.
    #[serde(
        default,
        deserialize_with = "nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub flags: Vec<String>,
    /// Socket of the agent for `SCMP_ACT_NOTIFY`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub listener_path: String,
    /// Rules.
    #[serde(
        default,
        deserialize_with = "nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub syscalls: Vec<SyscallRule>,
}

/// The action for some calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SyscallRule {
    /// Names; one that does not exist on the machine is not an error.
    #[serde(default, deserialize_with = "nullable")]
    pub names: Vec<String>,
    /// The action.
    pub action: Action,
    /// Error number, or data for a tracer; `None` is `EPERM`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errno_ret: Option<u32>,
    /// Comparisons that must all hold. Several with the same index are alternatives instead.
    #[serde(
        default,
        deserialize_with = "nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub args: Vec<ArgRule>,
}

/// A comparison of one argument, all 64 bits of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArgRule {
    /// Index of the argument, 0 to 5.
    pub index: u32,
    /// The value to compare it with; the mask of [`Operator::MaskedEqual`].
    pub value: u64,
    /// The value to compare the masked argument with.
    #[serde(default)]
    pub value_two: u64,
    /// The comparison.
    pub op: Operator,
}

/// The kernel's action for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Action {
    /// Kills the calling thread.
    #[serde(rename = "SCMP_ACT_KILL_THREAD", alias = "SCMP_ACT_KILL")]
    KillThread,
    /// Kills the process.
    #[serde(rename = "SCMP_ACT_KILL_PROCESS")]
    KillProcess,
    /// Sends `SIGSYS`.
    #[serde(rename = "SCMP_ACT_TRAP")]
    Trap,
    /// Fails with an error number.
    #[serde(rename = "SCMP_ACT_ERRNO")]
    Errno,
    /// Notifies a tracer; without one it fails with `ENOSYS`.
    #[serde(rename = "SCMP_ACT_TRACE")]
    Trace,
    /// Allowed and logged.
    #[serde(rename = "SCMP_ACT_LOG")]
    Log,
    /// Allowed.
    #[serde(rename = "SCMP_ACT_ALLOW")]
    Allow,
    /// Notifies an agent in user space.
    #[serde(rename = "SCMP_ACT_NOTIFY")]
    Notify,
}

/// Comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Operator {
    /// `argument != value`.
    #[serde(rename = "SCMP_CMP_NE")]
    NotEqual,
    /// `argument < value`, unsigned.
    #[serde(rename = "SCMP_CMP_LT")]
    Less,
    /// `argument <= value`, unsigned.
    #[serde(rename = "SCMP_CMP_LE")]
    LessOrEqual,
    /// `argument == value`.
    #[serde(rename = "SCMP_CMP_EQ")]
    Equal,
    /// `argument >= value`, unsigned.
    #[serde(rename = "SCMP_CMP_GE")]
    GreaterOrEqual,
    /// `argument > value`, unsigned.
    #[serde(rename = "SCMP_CMP_GT")]
    Greater,
    /// `argument & value == value_two`.
    #[serde(rename = "SCMP_CMP_MASKED_EQ")]
    MaskedEqual,
}

/// Architectures of system calls, as libseccomp names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Architecture {
    /// 64-bit x86.
    #[serde(rename = "SCMP_ARCH_X86_64")]
    X86_64,
    /// 32-bit x86.
    #[serde(rename = "SCMP_ARCH_X86")]
    X86,
    /// 64-bit x86 with 32-bit pointers.
    #[serde(rename = "SCMP_ARCH_X32")]
    X32,
    /// 64-bit ARM.
    #[serde(rename = "SCMP_ARCH_AARCH64")]
    Aarch64,
    /// 32-bit ARM.
    #[serde(rename = "SCMP_ARCH_ARM")]
    Arm,
    /// An architecture that Rubelet does not support.
    #[serde(other)]
    Other,
}
