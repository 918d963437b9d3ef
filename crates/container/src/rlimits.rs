//! Resource limits of a process.

use rubelet_oci::Rlimit;
use rustix::{
    io::Errno,
    process::{Resource, getrlimit, setrlimit},
};

use crate::step::{StepError, reason};

/// One limit, read.
#[derive(Debug, Clone)]
pub(crate) struct ResourceLimit<'a> {
    name: &'a str,
    resource: Resource,
    soft: Option<u64>,
    hard: Option<u64>,
}

/// Reads the names.
pub(crate) fn read(limits: &[Rlimit]) -> Result<Vec<ResourceLimit<'_>>, StepError> {
    limits.iter().map(ResourceLimit::read).collect()
}

/// Sets limits. Returns warnings about hard limits that can't be raised.
pub(crate) fn apply(limits: &[ResourceLimit<'_>]) -> Result<Vec<String>, StepError> {
    let mut warnings = Vec::new();
    for limit in limits {
        warnings.extend(limit.apply()?);
    }
    Ok(warnings)
}

impl<'a> ResourceLimit<'a> {
    fn read(limit: &'a Rlimit) -> Result<Self, StepError> {
        let resource = match limit.kind.as_str() {
            "RLIMIT_AS" => Resource::As,
            "RLIMIT_CORE" => Resource::Core,
            "RLIMIT_CPU" => Resource::Cpu,
            "RLIMIT_DATA" => Resource::Data,
            "RLIMIT_FSIZE" => Resource::Fsize,
            "RLIMIT_LOCKS" => Resource::Locks,
            "RLIMIT_MEMLOCK" => Resource::Memlock,
            "RLIMIT_MSGQUEUE" => Resource::Msgqueue,
            "RLIMIT_NICE" => Resource::Nice,
            "RLIMIT_NOFILE" => Resource::Nofile,
            "RLIMIT_NPROC" => Resource::Nproc,
            "RLIMIT_RSS" => Resource::Rss,
            "RLIMIT_RTPRIO" => Resource::Rtprio,
            "RLIMIT_RTTIME" => Resource::Rttime,
            "RLIMIT_SIGPENDING" => Resource::Sigpending,
            "RLIMIT_STACK" => Resource::Stack,
            other => return Err(StepError(format!("unknown resource limit {other:?}"))),
        };
        // The largest number means unlimited.
        let number = |value| (value != u64::MAX).then_some(value);
        Ok(Self {
            name: &limit.kind,
            resource,
            soft: number(limit.soft),
            hard: number(limit.hard),
        })
    }

    fn apply(&self) -> Result<Option<String>, StepError> {
        let wanted = rustix::process::Rlimit {
            current: self.soft,
            maximum: self.hard,
        };
        match setrlimit(self.resource, wanted) {
            Ok(()) => Ok(None),
            Err(Errno::PERM) => {
                // Raising a hard limit takes CAP_SYS_RESOURCE: the highest one that is permitted is
                // set instead.
                let highest = getrlimit(self.resource).maximum;
                let current = match (self.soft, highest) {
                    (Some(soft), Some(highest)) => Some(soft.min(highest)),
                    (soft, highest) => soft.or(highest),
                };
                let possible = rustix::process::Rlimit {
                    current,
                    maximum: highest,
                };
                let _ = setrlimit(self.resource, possible);
                Ok(Some(format!(
                    "cannot raise {} above {}: operation not permitted",
                    self.name,
                    highest.map_or("unlimited".to_owned(), |limit| limit.to_string())
                )))
            }
            Err(error) => Err(StepError(format!(
                "cannot set {}: {}",
                self.name,
                reason(&error.into())
            ))),
        }
    }
}
