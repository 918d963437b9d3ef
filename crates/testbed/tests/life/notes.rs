//! A directory on the host in which containers record their events, in order, and in which a test
//! creates files that they wait for.

use std::path::PathBuf;

use anyhow::{Context, Result};
use rubelet_testbed::Node;
use rubelet_testbed::manifest::{pod, shell, with};
use serde_json::{Value, json};

/// The directory of one test.
pub(crate) struct Notes {
    dir: PathBuf,
}

impl Notes {
    /// Creates the directory.
    pub(crate) fn new(node: &Node, name: &str) -> Result<Self> {
        let dir = node.host_dir(name)?;
        Ok(Self { dir })
    }

    /// A pod that has the directory at `/notes` in each container.
    pub(crate) fn pod(&self, name: &str, spec: Value) -> Value {
        let mut spec = with(
            spec,
            &json!({ "volumes": [{ "name": "notes", "hostPath": { "path": self.dir } }] }),
        );
        for list in ["initContainers", "containers"] {
            let containers = spec[list].as_array_mut().into_iter().flatten();
            for container in containers {
                let mount = json!({ "name": "notes", "mountPath": "/notes" });
                container["volumeMounts"] = json!([mount]);
            }
        }
        pod(name, &spec)
    }

    /// All recorded lines.
    pub(crate) fn lines(&self) -> Vec<String> {
        // Without a file nothing was recorded yet.
        let text = std::fs::read_to_string(self.dir.join("notes")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Number of times that this was recorded.
    pub(crate) fn count(&self, line: &str) -> usize {
        self.lines().iter().filter(|found| *found == line).count()
    }

    /// Waits until this was recorded; returns all lines.
    pub(crate) fn wait(&self, node: &Node, line: &str) -> Result<Vec<String>> {
        self.wait_count(node, line, 1)
    }

    /// Waits until this was recorded this many times; returns all lines.
    pub(crate) fn wait_count(&self, node: &Node, line: &str, count: usize) -> Result<Vec<String>> {
        let what = format!("{line:?} was recorded {count} times");
        super::wait(node, &what, || Ok(self.count(line) >= count))
            .with_context(|| format!("recorded lines: {:#?}", self.lines()))?;
        Ok(self.lines())
    }

    /// Creates a file.
    pub(crate) fn touch(&self, name: &str) -> Result<()> {
        std::fs::write(self.dir.join(name), "").context("cannot create a file for containers")
    }

    /// Removes a file.
    pub(crate) fn forget(&self, name: &str) -> Result<()> {
        std::fs::remove_file(self.dir.join(name)).context("cannot remove a file of containers")
    }
}

/// A command that records something.
pub(crate) fn note(what: &str) -> String {
    format!("echo {what} >> /notes/notes")
}

/// A command that waits until a file exists.
pub(crate) fn until(file: &str) -> String {
    format!("until test -e /notes/{file}; do sleep 0.05; done")
}

/// A script that records its start and, on SIGTERM, its end after this command; it exits with
/// `code`.
pub(crate) fn noting_script(name: &str, at_term: &str, code: i32) -> String {
    format!(
        "trap '{at_term}; {}; exit {code}' TERM; {}; while :; do sleep 3600 & wait $!; done",
        note(&format!("{name} ends")),
        note(&format!("{name} begins")),
    )
}

/// A container that records its start, and its end on SIGTERM.
pub(crate) fn noting(name: &str) -> Value {
    shell(name, &noting_script(name, ":", 0))
}

/// The same as a sidecar.
pub(crate) fn sidecar(container: Value) -> Value {
    with(container, &json!({ "restartPolicy": "Always" }))
}

/// A probe that runs a script once a second.
pub(crate) fn exec_probe(script: &str) -> Value {
    json!({ "exec": { "command": ["sh", "-c", script] }, "periodSeconds": 1, "timeoutSeconds": 5 })
}
