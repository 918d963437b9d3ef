//! The programs of a real control plane, found in one directory.

use std::fmt;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::command::stdout_of;

/// The required programs of a control plane.
pub const NEEDED: [&str; 4] = [
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
];

/// A directory that contains all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programs {
    dir: PathBuf,
}

impl Programs {
    /// Finds them.
    ///
    /// # Errors
    /// It is not a directory, or lacks a program; all missing ones are named.
    pub fn find(dir: &Path) -> Result<Self> {
        if !dir.is_dir() {
            bail!(
                "{} is not a directory; it has to hold {}",
                dir.display(),
                NEEDED.join(", ")
            );
        }
        let missing: Vec<&str> = NEEDED
            .into_iter()
            .filter(|name| !is_program(&dir.join(name)))
            .collect();
        if !missing.is_empty() {
            bail!(
                "{} lacks {}; a real API server needs the programs {}",
                dir.display(),
                missing.join(", "),
                NEEDED.join(", ")
            );
        }
        // The processes have another working directory.
        let dir = std::path::absolute(dir)?;
        Ok(Self { dir })
    }

    /// The path of a program.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Their directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The directory's kubectl, if it has one.
    #[must_use]
    pub fn kubectl(&self) -> Option<PathBuf> {
        let path = self.dir.join("kubectl");
        is_program(&path).then_some(path)
    }

    /// The API server's version, such as `v1.36.0`.
    ///
    /// # Errors
    /// It can't be started.
    pub fn version(&self) -> Result<String> {
        let text = stdout_of(Command::new(self.path("kube-apiserver")).arg("--version"))?;
        let text = text.trim();
        Ok(text.strip_prefix("Kubernetes ").unwrap_or(text).to_owned())
    }
}

impl fmt::Display for Programs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.dir.display())
    }
}

fn is_program(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_programs_of_a_directory_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, mode: u32| {
            let path = dir.path().join(name);
            std::fs::write(&path, "#!/bin/sh\necho Kubernetes v1.2.3\n").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        for name in ["etcd", "kube-apiserver", "kube-scheduler"] {
            put(name, 0o755);
        }
        put("kube-controller-manager", 0o644);
        let error = Programs::find(dir.path()).unwrap_err().to_string();
        assert!(
            error.contains("lacks kube-controller-manager;"),
            "what can't be run is missing, the others are not: {error}"
        );
        put("kube-controller-manager", 0o755);
        let programs = Programs::find(dir.path()).unwrap();
        assert_eq!(programs.kubectl(), None);
        put("kubectl", 0o755);
        assert_eq!(programs.kubectl(), Some(dir.path().join("kubectl")));
        assert_eq!(programs.version().unwrap(), "v1.2.3");

        let error = Programs::find(&dir.path().join("none")).unwrap_err();
        assert!(error.to_string().contains("is not a directory"), "{error}");
    }
}
