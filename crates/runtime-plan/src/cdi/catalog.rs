//! All CDI devices of a machine.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use super::{CdiDocument, DeviceEdits, document::Device, name};
use crate::Refusal;

/// A CDI specification file.
#[derive(Debug, Clone, PartialEq)]
pub struct SpecFile {
    /// Its path.
    pub path: PathBuf,
    /// Its directory's position. Of two files with the same device, the one of the later directory
    /// wins.
    pub priority: usize,
    /// Its content, or the reason why it cannot be used.
    pub content: Result<CdiDocument, UnusableSpec>,
}

/// Why a specification file cannot be used: one line for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnusableSpec(pub String);

/// Devices by their qualified names.
#[derive(Debug, Clone, Default)]
pub struct DeviceCatalog<'a> {
    devices: BTreeMap<String, CatalogEntry<'a>>,
    broken: Vec<(&'a SpecFile, &'a UnusableSpec)>,
}

/// The files that describe a device with the highest priority. With more than one, the device is
/// ambiguous.
#[derive(Debug, Clone)]
struct CatalogEntry<'a> {
    priority: usize,
    places: Vec<(&'a SpecFile, &'a CdiDocument, &'a Device)>,
}

impl<'a> DeviceCatalog<'a> {
    /// Indexes the devices of the files.
    #[must_use]
    pub fn of(files: &'a [SpecFile]) -> Self {
        let mut catalog = Self::default();
        for file in files {
            let document = match &file.content {
                Ok(document) => document,
                Err(why) => {
                    catalog.broken.push((file, why));
                    continue;
                }
            };
            for device in &document.devices {
                catalog.add(file, document, device);
            }
        }
        catalog
    }

    fn add(&mut self, file: &'a SpecFile, document: &'a CdiDocument, device: &'a Device) {
        let name = format!("{}={}", document.kind, device.name);
        let entry = self.devices.entry(name).or_insert(CatalogEntry {
            priority: file.priority,
            places: Vec::new(),
        });
        if file.priority > entry.priority {
            entry.priority = file.priority;
            entry.places.clear();
        }
        if file.priority == entry.priority {
            entry.places.push((file, document, device));
        }
    }

    /// The edits for a container with these devices. A file's edits for all of its devices come
    /// once, before the first of them.
    ///
    /// # Errors
    /// A device is not defined, or defined twice.
    pub fn edits(&self, names: &[String]) -> Result<DeviceEdits, Refusal> {
        let mut edits = DeviceEdits::default();
        let mut seen = BTreeSet::new();
        for name in names {
            let refuse = |message: String| Err(Refusal::new("cdi_devices", message));
            let places = self
                .devices
                .get(name)
                .map_or(&[][..], |entry| &entry.places);
            match places {
                [] => return refuse(self.missing(name)),
                [(file, document, device)] => {
                    if seen.insert(&file.path) {
                        edits.add(&document.kind, &document.container_edits);
                    }
                    edits.add(name, &device.container_edits);
                }
                several => {
                    let files = several
                        .iter()
                        .map(|(file, ..)| file.path.display().to_string());
                    return refuse(format!(
                        "the CDI device {name:?} is defined more than once: {}; remove all files but one",
                        files.collect::<Vec<_>>().join(", ")
                    ));
                }
            }
        }
        Ok(edits)
    }

    fn missing(&self, name: &str) -> String {
        let mut message = format!("no CDI specification of the device {name:?} found on this node");
        let kind = name::qualified(name).map_or("", |(kind, _)| kind);
        let of_kind: Vec<&str> = self
            .devices
            .keys()
            .filter(|known| known.split('=').next() == Some(kind))
            .map(String::as_str)
            .collect();
        if !of_kind.is_empty() {
            message.push_str(&format!("; there are {}", of_kind.join(", ")));
        }
        if let Some((file, why)) = self.broken.first() {
            message.push_str(&format!("; {} cannot be used: {why}", file.path.display()));
        }
        message
    }

    /// Problems, one line each: files that can't be used, and devices that are defined twice.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let broken = self
            .broken
            .iter()
            .map(|(file, why)| format!("{}: {why}", file.path.display()));
        let twice = self
            .devices
            .iter()
            .filter(|(_, entry)| entry.places.len() > 1)
            .map(|(name, entry)| {
                let files = entry
                    .places
                    .iter()
                    .map(|(file, ..)| file.path.display().to_string());
                let files = files.collect::<Vec<_>>().join(" and ");
                format!("the device {name:?} is in {files}")
            });
        broken.chain(twice).collect()
    }
}
