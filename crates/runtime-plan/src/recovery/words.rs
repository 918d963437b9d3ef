//! Steps in words, for the log.

use std::fmt;

use super::Step;

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Adopt { sandbox } => write!(f, "keep the shim of sandbox {sandbox}"),
            Self::EndShim { sandbox } => write!(f, "end the shim of sandbox {sandbox}"),
            Self::DeleteInShim { container, .. } => {
                write!(f, "have its shim kill and forget container {container}")
            }
            Self::KillCgroup(path) => write!(f, "kill and remove cgroup {path}"),
            Self::MarkRunning { container, pid, .. } => {
                write!(f, "note that container {container} runs as process {pid}")
            }
            Self::MarkExited { container, exit } => write!(
                f,
                "note that container {container} ended with exit code {} ({})",
                exit.code, exit.reason
            ),
            Self::MarkNotReady { sandbox } => write!(f, "note that sandbox {sandbox} has ended"),
            Self::FreeNetwork { sandbox } => {
                write!(f, "take sandbox {sandbox} off the network")
            }
            Self::Unmount(path) => write!(f, "unmount {}", path.display()),
            Self::RemoveDirectory(path) => write!(f, "remove directory {}", path.display()),
            Self::RemoveSnapshot { container } => {
                write!(f, "remove the files of container {container}")
            }
            Self::RemoveContainer { container } => {
                write!(f, "remove the record of container {container}")
            }
            Self::RemoveSandbox { sandbox } => {
                write!(f, "remove the record of sandbox {sandbox}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ExitRecord;

    #[test]
    fn a_step_reads_as_an_instruction() {
        let exit = ExitRecord {
            code: 137,
            at: 0,
            reason: "OOMKilled".to_owned(),
            message: String::new(),
            signal: 9,
            oom_killed: true,
        };
        let container = "c1".to_owned();
        let step = Step::MarkExited { container, exit };
        let text = "note that container c1 ended with exit code 137 (OOMKilled)";
        assert_eq!(step.to_string(), text);
        let step = Step::Unmount("/run/a b".into());
        assert_eq!(step.to_string(), "unmount /run/a b");
    }
}
