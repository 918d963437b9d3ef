//! The manifest of the pod, which exists as long as the shell is open.

use std::{
    fs::{self, OpenOptions, Permissions},
    io::{self, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use serde_json::json;

/// Namespace of the pod.
pub(super) const NAMESPACE: &str = "kube-system";
/// Its only container.
pub(super) const CONTAINER: &str = "shell";

/// A manifest that is removed on drop, also on a panic.
pub(super) struct ManifestFile {
    path: Option<PathBuf>,
}

impl ManifestFile {
    /// Writes it under a hidden name, which the agent ignores, and renames it.
    pub(super) fn write(directory: &Path, name: &str, image: &str) -> anyhow::Result<Self> {
        let path = directory.join(format!("{name}.yaml"));
        let hidden = directory.join(format!(".{name}.yaml"));
        let written = write(&hidden, &text(name, image)).and_then(|()| fs::rename(&hidden, &path));
        if written.is_err() {
            // It may not exist.
            let _ = fs::remove_file(&hidden);
        }
        written.with_context(|| format!("cannot write the manifest {}", path.display()))?;
        Ok(Self { path: Some(path) })
    }

    pub(super) fn remove(mut self) -> anyhow::Result<()> {
        self.path.take().map_or(Ok(()), |path| remove(&path))
    }
}

impl Drop for ManifestFile {
    fn drop(&mut self) {
        if let Some(path) = self.path.take() {
            // Drop can't report an error.
            let _ = remove(&path);
        }
    }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())
}

fn remove(path: &Path) -> anyhow::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed
            .with_context(|| format!("cannot remove {}: its pod runs until it is", path.display())),
    }
}

/// The pod, as JSON, which is YAML too.
fn text(name: &str, image: &str) -> String {
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": { "app.kubernetes.io/managed-by": "rubelet-shell" },
        },
        "spec": {
            "hostPID": true,
            "hostNetwork": true,
            "hostIPC": true,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "tolerations": [{ "operator": "Exists" }],
            "containers": [{
                "name": CONTAINER,
                "image": image,
                // The session runs beside it: the container only has to stay up.
                "command": ["sh", "-c", "while sleep 3600; do :; done"],
                "securityContext": { "privileged": true },
                "volumeMounts": [{ "name": "host", "mountPath": "/host" }],
            }],
            "volumes": [{ "name": "host", "hostPath": { "path": "/" } }],
        },
    });
    format!("{pod:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_there_while_the_shell_is_open() {
        let home = tempfile::tempdir().unwrap();
        let file = ManifestFile::write(home.path(), "rubelet-shell-x", "busybox").unwrap();
        let path = home.path().join("rubelet-shell-x.yaml");
        assert!(fs::read_to_string(&path).unwrap().contains("\"busybox\""));
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
        file.remove().unwrap();
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
        let file = ManifestFile::write(home.path(), "rubelet-shell-x", "busybox").unwrap();
        drop(file);
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
        ManifestFile::write(&home.path().join("none"), "x", "y")
            .err()
            .unwrap();
    }
}
