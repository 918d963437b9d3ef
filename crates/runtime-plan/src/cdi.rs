//! The Container Device Interface (CNCF, up to 1.1.0): specification files of vendors list what a
//! container needs to use a device: nodes, mounts, environment variables, groups.

mod catalog;
mod document;
mod edits;
mod name;
#[cfg(test)]
mod tests;

pub use catalog::{DeviceCatalog, SpecFile, UnusableSpec};
pub use document::{CdiDocument, FieldError, SpecError, read};
pub use edits::{DeviceEdits, NodeOnHost, apply};
pub use name::NameError;

use std::collections::BTreeSet;

use rubelet_cri::v1;

use crate::Refusal;

/// Annotations with this beginning name devices, too, as kubelets before 1.28 pass them.
const ANNOTATION: &str = "cdi.k8s.io/";

/// The devices that a container requests, by their qualified names, each once.
///
/// # Errors
/// A name that no device can have.
pub fn wanted(container: &v1::ContainerConfig) -> Result<Vec<String>, Refusal> {
    let mut seen = BTreeSet::new();
    let mut names = Vec::new();
    let fields = container
        .cdi_devices
        .iter()
        .map(|device| ("cdi_devices".to_owned(), device.name.as_str()));
    let annotations = container
        .annotations
        .iter()
        .filter(|(key, _)| key.starts_with(ANNOTATION))
        .flat_map(|(key, value)| {
            value
                .split(',')
                .map(move |name| (format!("annotations[{key}]"), name.trim()))
        });
    for (field, wanted) in fields.chain(annotations) {
        if let Err(why) = name::qualified(wanted) {
            return Err(Refusal::new(
                field,
                format!("{wanted:?} is not a CDI device name such as vendor.com/class=name: {why}"),
            ));
        }
        if seen.insert(wanted.to_owned()) {
            names.push(wanted.to_owned());
        }
    }
    Ok(names)
}
