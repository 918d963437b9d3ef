//! Device nodes of the host.

use std::{
    fs, io,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::Path,
};

use rubelet_cri::v1;
use rubelet_oci::DeviceKind;
use rubelet_runtime_plan::container_spec::HostDevice;

use crate::error::{Result, RuntimeError};

/// Directories below `/dev` that are file systems of their own in each container.
const OWN: [&str; 5] = ["pts", "shm", "mqueue", "fd", "hugepages"];

/// For each device of a container, in their order: the node, or all nodes below a directory.
/// Blocks.
pub(crate) fn wanted(devices: &[v1::Device]) -> Result<Vec<Vec<HostDevice>>> {
    devices
        .iter()
        .map(|device| {
            let path = Path::new(&device.host_path);
            let mut found = Vec::new();
            collect(path, &mut found, &[]).map_err(|error| {
                RuntimeError::because(
                    format!("cannot use the device {}", device.host_path),
                    &error,
                )
            })?;
            if found.is_empty() {
                return Err(RuntimeError::invalid(format!(
                    "{} is neither a device nor a directory with devices",
                    device.host_path
                )));
            }
            Ok(found)
        })
        .collect()
}

/// All devices of the host, for privileged containers. Blocks.
pub(crate) fn all() -> Result<Vec<HostDevice>> {
    let mut found = Vec::new();
    collect(Path::new("/dev"), &mut found, &OWN)
        .map_err(|error| RuntimeError::because("cannot list the devices of the host", &error))?;
    // `/dev/console` of a container is its own terminal, never the host's.
    found.retain(|device| device.path != Path::new("/dev/console"));
    Ok(found)
}

fn collect(path: &Path, found: &mut Vec<HostDevice>, skip: &[&str]) -> io::Result<()> {
    let path = fs::canonicalize(path)?;
    let metadata = fs::symlink_metadata(&path)?;
    let kind = metadata.file_type();
    if kind.is_dir() {
        for entry in fs::read_dir(&path)? {
            let entry = entry?;
            let name = entry.file_name();
            let skipped =
                skip.iter().any(|skip| name == *skip) || name.as_encoded_bytes().starts_with(b".");
            // The target of a symbolic link is found itself if it is below /dev.
            if skipped || entry.file_type()?.is_symlink() {
                continue;
            }
            match collect(&entry.path(), found, &[]) {
                // The device was unplugged meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                other => other?,
            }
        }
        return Ok(());
    }
    let kind = if kind.is_char_device() {
        DeviceKind::Char
    } else if kind.is_block_device() {
        DeviceKind::Block
    } else {
        return Ok(());
    };
    found.push(HostDevice {
        kind,
        major: rustix::fs::major(metadata.rdev()),
        minor: rustix::fs::minor(metadata.rdev()),
        mode: metadata.mode() & 0o7777,
        uid: metadata.uid(),
        gid: metadata.gid(),
        path,
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_null_device_is_found_by_itself_and_among_all() {
        let device = |path: &str| v1::Device {
            host_path: path.to_owned(),
            ..Default::default()
        };
        let found = wanted(&[device("/dev/null")]).unwrap();
        assert_eq!((found[0][0].major, found[0][0].minor), (1, 3));
        assert!(all().unwrap().contains(&found[0][0]));
        let error = wanted(&[device("/etc/passwd")]).unwrap_err();
        assert!(error.message.contains("is neither a device"), "{error}");
    }
}
