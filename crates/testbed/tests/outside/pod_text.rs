//! Manifests of pods whose containers do nothing until SIGTERM.

use rubelet_testbed::manifest::{WAIT, pod, shell, waiting};
use serde_json::{Value, json};

/// One pod, written as JSON, which is YAML too.
#[derive(Debug, Clone)]
pub(crate) struct PodText {
    name: String,
    value: Value,
}

impl PodText {
    /// A pod with one container, `main`, that waits for SIGTERM.
    pub(crate) fn new(name: &str) -> Self {
        let value = pod(name, &json!({ "containers": [waiting("main")] }));
        let name = name.to_owned();
        Self { name, value }
    }

    /// Adds a container that waits for SIGTERM.
    pub(crate) fn container(mut self, name: &str) -> Self {
        push(&mut self.value["spec"]["containers"], waiting(name));
        self
    }

    /// Adds an init container that exits immediately.
    pub(crate) fn init(mut self, name: &str) -> Self {
        let init = &mut self.value["spec"]["initContainers"];
        if init.is_null() {
            *init = json!([]);
        }
        push(init, shell(name, "exit 0"));
        self
    }

    /// Sets the script of the first container.
    pub(crate) fn script(mut self, script: &str) -> Self {
        self.value["spec"]["containers"][0] = shell("main", script);
        self
    }

    /// Makes the first container print a line before it waits.
    pub(crate) fn saying(self, words: &str) -> Self {
        self.script(&format!("echo \"{words}\"; {WAIT}"))
    }

    /// Changes the definition of a container, by its index.
    pub(crate) fn edited(mut self, container: usize, version: &str) -> Self {
        self.value["spec"]["containers"][container]["env"] =
            json!([{ "name": "VERSION", "value": version }]);
        self
    }

    /// Sets a field of the spec.
    pub(crate) fn spec(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.value["spec"][field] = value.into();
        self
    }

    /// Sets a label.
    pub(crate) fn label(mut self, key: &str, value: &str) -> Self {
        self.value["metadata"]["labels"][key] = value.into();
        self
    }

    /// Sets another namespace than `default`.
    pub(crate) fn namespace(mut self, namespace: &str) -> Self {
        self.value["metadata"]["namespace"] = namespace.into();
        self
    }

    /// The name in the manifest.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The name of the pod's own file.
    pub(crate) fn file(&self) -> String {
        format!("{}.yaml", self.name)
    }

    /// The manifest as a text of one line.
    pub(crate) fn yaml(&self) -> String {
        format!("{}\n", self.value)
    }
}

/// Several pods as documents of one file.
pub(crate) fn documents(pods: &[PodText]) -> String {
    let texts: Vec<String> = pods.iter().map(PodText::yaml).collect();
    texts.join("---\n")
}

/// Several pods as one PodList.
pub(crate) fn list(pods: &[PodText]) -> String {
    let items: Vec<&Value> = pods.iter().map(|pod| &pod.value).collect();
    json!({ "apiVersion": "v1", "kind": "PodList", "items": items }).to_string()
}

fn push(list: &mut Value, item: Value) {
    list.as_array_mut().expect("a list").push(item);
}
