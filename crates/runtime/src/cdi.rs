//! CDI devices: reads the specification files of vendors.

use std::{
    fs, io,
    os::unix::fs::{FileTypeExt as _, MetadataExt as _},
    path::{Path, PathBuf},
};

use rubelet_oci::{DeviceKind, Spec};
use rubelet_runtime_plan::cdi::{
    self, DeviceCatalog, DeviceEdits, NodeOnHost, SpecFile, UnusableSpec,
};

use crate::error::{Result, RuntimeError};

/// Largest file that is read. Some list hundreds of devices.
const MAX_FILE_SIZE: u64 = 16 << 20;

/// The edits that a container's devices make, with the device nodes found on the host.
#[derive(Debug, Default)]
pub(crate) struct CdiDevices {
    edits: DeviceEdits,
    nodes: Vec<NodeOnHost>,
}

impl CdiDevices {
    /// Applies the edits to a specification.
    pub(crate) fn apply(&self, spec: &mut Spec) -> Result<()> {
        cdi::apply(spec, &self.edits, self.nodes.iter().copied())?;
        Ok(())
    }
}

/// Looks for devices by their names. Reads nothing for a container without any. Blocks.
pub(crate) fn find(dirs: &[PathBuf], names: &[String]) -> Result<CdiDevices> {
    if names.is_empty() {
        return Ok(CdiDevices::default());
    }
    let files = read_all(dirs);
    let edits = DeviceCatalog::of(&files).edits(names)?;
    let wanted = edits.nodes_to_inspect();
    let nodes = wanted.iter().map(|path| {
        look(path).map_err(|error| {
            RuntimeError::because(format!("cannot use the device {}", path.display()), &error)
        })
    });
    let nodes = nodes.collect::<Result<_>>()?;
    Ok(CdiDevices { edits, nodes })
}

/// Problems of the specification files, one line each. Blocks.
pub(crate) fn problems(dirs: &[PathBuf]) -> Vec<String> {
    DeviceCatalog::of(&read_all(dirs)).problems()
}

/// All files of the directories, in order. A file that can't be read affects only the devices in
/// it.
fn read_all(dirs: &[PathBuf]) -> Vec<SpecFile> {
    let mut files = Vec::new();
    for (priority, dir) in dirs.iter().enumerate() {
        let Ok(entries) = fs::read_dir(dir) else {
            continue;
        };
        let mut paths: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| {
                path.extension()
                    .is_some_and(|kind| kind == "json" || kind == "yaml")
            })
            .collect();
        paths.sort();
        files.extend(paths.into_iter().filter(|path| !path.is_dir()).map(|path| {
            let content = read(&path)
                .map_err(|error| error.to_string())
                .and_then(|text| cdi::read(&text).map_err(|error| error.to_string()))
                .map_err(UnusableSpec);
            SpecFile {
                path,
                priority,
                content,
            }
        }));
    }
    files
}

fn read(path: &Path) -> io::Result<String> {
    let found = fs::metadata(path)?;
    if !found.is_file() || found.len() > MAX_FILE_SIZE {
        return Err(io::Error::other(format!(
            "not a regular file of at most {MAX_FILE_SIZE} bytes"
        )));
    }
    fs::read_to_string(path)
}

fn look(path: &Path) -> io::Result<NodeOnHost> {
    let found = fs::metadata(path)?;
    let kind = found.file_type();
    let kind = if kind.is_char_device() {
        DeviceKind::Char
    } else if kind.is_block_device() {
        DeviceKind::Block
    } else if kind.is_fifo() {
        DeviceKind::Fifo
    } else {
        return Err(io::Error::other("not a device"));
    };
    Ok(NodeOnHost {
        kind,
        major: rustix::fs::major(found.rdev()).into(),
        minor: rustix::fs::minor(found.rdev()).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_all_directories_are_read_and_the_nodes_looked_at() {
        let dir = tempfile::Builder::new()
            .prefix("rbt-runtime-")
            .tempdir()
            .unwrap();
        let dirs = [dir.path().join("one"), dir.path().join("none")];
        fs::create_dir(&dirs[0]).unwrap();
        let text = "cdiVersion: 0.5.0\nkind: rubelet.test/null\ndevices:\n- name: \"0\"\n  containerEdits:\n    deviceNodes: [{ path: /dev/zilch, hostPath: /dev/null }]\n";
        fs::write(dirs[0].join("null.yaml"), text).unwrap();
        fs::write(dirs[0].join("notes.txt"), "no").unwrap();
        fs::create_dir(dirs[0].join("directory.json")).unwrap();
        let names = ["rubelet.test/null=0".to_owned()];
        let devices = find(&dirs, &names).unwrap();
        let mut spec = Spec::default();
        devices.apply(&mut spec).unwrap();
        let node = &spec.linux.devices[0];
        assert_eq!(
            (node.major, node.minor, node.kind),
            (1, 3, DeviceKind::Char)
        );
        assert!(problems(&dirs).is_empty());

        fs::write(dirs[0].join("broken.json"), "{").unwrap();
        assert_eq!(problems(&dirs).len(), 1);
        assert!(find(&dirs, &names).is_ok(), "the others can be used");
        fs::write(
            dirs[0].join("null.yaml"),
            text.replace("/dev/null", "/etc/passwd"),
        )
        .unwrap();
        let error = find(&dirs, &names).unwrap_err();
        assert!(
            error.message.contains("/etc/passwd: not a device"),
            "{error}"
        );
    }
}
