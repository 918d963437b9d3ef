//! The text of recovery steps, for the log.

use std::fmt;

use super::RecoveryStep;

impl fmt::Display for RecoveryStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Adopt { sandbox } => write!(f, "keep the shim of sandbox {sandbox}"),
            Self::EndShim { sandbox } => write!(f, "shut down the shim of sandbox {sandbox}"),
            Self::DeleteInShim { container, .. } => {
                write!(f, "delete container {container} in its shim")
            }
            Self::KillCgroup(path) => write!(f, "kill and remove cgroup {path}"),
            Self::MarkRunning { container, pid, .. } => {
                write!(f, "record that container {container} runs as process {pid}")
            }
            Self::MarkExited { container, exit } => write!(
                f,
                "record that container {container} exited with code {} ({})",
                exit.code, exit.reason
            ),
            Self::MarkNotReady { sandbox } => {
                write!(f, "record that sandbox {sandbox} is not ready")
            }
            Self::FreeNetwork { sandbox } => {
                write!(f, "detach sandbox {sandbox} from the network")
            }
            Self::Unmount(path) => write!(f, "unmount {}", path.display()),
            Self::RemoveDirectory(path) => write!(f, "remove directory {}", path.display()),
            Self::RemoveSnapshot { container } => {
                write!(f, "remove the root file system of container {container}")
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
        let step = RecoveryStep::MarkExited { container, exit };
        let text = "record that container c1 exited with code 137 (OOMKilled)";
        assert_eq!(step.to_string(), text);
        let step = RecoveryStep::Unmount("/run/a b".into());
        assert_eq!(step.to_string(), "unmount /run/a b");
    }
}
