//! A directory on the host in which containers note what happens to them, in the order in which it
//! happens, and in which a test leaves files that they wait for.

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
    /// Makes the directory.
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

    /// All that was noted so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        // Nothing was noted yet where there is no file.
        let text = std::fs::read_to_string(self.dir.join("notes")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// How often this was noted.
    pub(crate) fn count(&self, line: &str) -> usize {
        self.lines().iter().filter(|found| *found == line).count()
    }

    /// Waits until this was noted; all that was noted by then.
    pub(crate) fn wait(&self, node: &Node, line: &str) -> Result<Vec<String>> {
        self.wait_count(node, line, 1)
    }

    /// Waits until this was noted so often; all that was noted by then.
    pub(crate) fn wait_count(&self, node: &Node, line: &str, count: usize) -> Result<Vec<String>> {
        let what = format!("{line:?} was noted {count} times");
        super::wait(node, &what, || Ok(self.count(line) >= count))
            .with_context(|| format!("{:#?} was noted", self.lines()))?;
        Ok(self.lines())
    }

    /// Makes a file.
    pub(crate) fn touch(&self, name: &str) -> Result<()> {
        std::fs::write(self.dir.join(name), "").context("cannot make a file for containers")
    }

    /// Removes a file.
    pub(crate) fn forget(&self, name: &str) -> Result<()> {
        std::fs::remove_file(self.dir.join(name)).context("cannot remove a file of containers")
    }
}

/// A command that notes something.
pub(crate) fn note(what: &str) -> String {
    format!("echo {what} >> /notes/notes")
}

/// A command that waits until there is a file.
pub(crate) fn until(file: &str) -> String {
    format!("until test -e /notes/{file}; do sleep 0.05; done")
}

/// A script that notes its begin and, at SIGTERM, its end after this command; it ends with `code`.
pub(crate) fn noting_script(name: &str, at_term: &str, code: i32) -> String {
    format!(
        "trap '{at_term}; {}; exit {code}' TERM; {}; while :; do sleep 3600 & wait $!; done",
        note(&format!("{name} ends")),
        note(&format!("{name} begins")),
    )
}

/// A container that notes its begin and its end at SIGTERM.
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
