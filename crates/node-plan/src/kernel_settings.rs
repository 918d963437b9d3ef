//! Settings of the kernel that a kubelet requires: `protectKernelDefaults`.
//!
//! Source of the values: `setupKernelTunables` in `pkg/kubelet/cm` of Kubernetes 1.36.

/// Names, and the required values.
const REQUIRED: [(&str, i64); 6] = [
    // Memory that is never used is not refused.
    ("vm.overcommit_memory", 1),
    // A lack of memory ends a process, not the machine.
    ("vm.panic_on_oom", 0),
    // A broken kernel ends and starts again after ten seconds.
    ("kernel.panic", 10),
    ("kernel.panic_on_oops", 1),
    // Each container needs a session keyring.
    ("kernel.keys.root_maxkeys", 1_000_000),
    ("kernel.keys.root_maxbytes", 25_000_000),
];

/// A setting with another value than the required one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelSetting {
    /// Its name.
    pub name: &'static str,
    /// The required value.
    pub required: i64,
    /// Its value; `None` if it can't be read.
    pub found: Option<i64>,
}

/// The settings that differ. `read` reads one by its name.
pub fn differing(read: impl Fn(&str) -> Option<i64>) -> Vec<KernelSetting> {
    let all = REQUIRED.iter().map(|&(name, required)| KernelSetting {
        name,
        required,
        found: read(name),
    });
    all.filter(|one| one.found != Some(one.required)).collect()
}

impl std::fmt::Display for KernelSetting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (name, required) = (self.name, self.required);
        match self.found {
            Some(found) => write!(f, "{name} is {found} instead of {required}"),
            None => write!(f, "{name} cannot be read, it must be {required}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_differ_are_named_with_both_values() {
        let read = |name: &str| match name {
            "vm.overcommit_memory" => Some(0),
            "kernel.panic" => None,
            name => REQUIRED
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| *value),
        };
        let found: Vec<String> = differing(read).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "vm.overcommit_memory is 0 instead of 1",
                "kernel.panic cannot be read, it must be 10",
            ]
        );
    }
}
