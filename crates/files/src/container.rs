//! The root directory of a running container.

use std::{
    fs as std_fs, io,
    os::fd::{AsFd as _, OwnedFd},
};

use rubelet_host::init_process;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{self, CWD, Mode},
    io::Errno,
};

use crate::{
    Destination, FilesError, Source,
    lookup::{DIRECTORY, Root},
};

/// The root directory of a container as its processes see it, mounts included, and the owner of new
/// files there.
#[derive(Debug)]
pub struct ContainerRoot {
    root: OwnedFd,
    owner: (u32, u32),
}

impl ContainerRoot {
    /// Opens the root directory of a process, if the process belongs to that container.
    ///
    /// # Errors
    /// The process is gone or belongs to another container, or its directory can't be opened.
    pub fn open(pid: u32, container: &str) -> Result<Self, FilesError> {
        let failed = |step| {
            move |source| FilesError::Io {
                step,
                path: format!("/proc/{pid}"),
                source,
            }
        };
        let process = init_process::open(pid, container).map_err(failed("watch"))?;
        let process = process.ok_or(FilesError::NotRunning)?;
        let root = fs::openat(CWD, format!("/proc/{pid}/root"), DIRECTORY, Mode::empty());
        let root = root.map_err(|error| failed("open the root of")(error.into()))?;
        let map = |name| std_fs::read_to_string(format!("/proc/{pid}/{name}"));
        let owner = map("uid_map").and_then(|uid| Ok((host_id(&uid), host_id(&map("gid_map")?))));
        let owner = owner.map_err(failed("read the user namespace of"))?;
        // If the process has not exited meanwhile, the PID was not reused while its directory was
        // opened.
        let mut polled = [PollFd::new(&process, PollFlags::IN)];
        match poll(&mut polled, Some(&Timespec::default())) {
            Ok(0) => Ok(Self { root, owner }),
            Ok(_) | Err(Errno::INTR) => Err(FilesError::NotRunning),
            Err(error) => Err(failed("watch")(io::Error::from(error))),
        }
    }

    /// A root without a process, whose files belong to this user and group.
    #[must_use]
    pub fn of_directory(root: OwnedFd, uid: u32, gid: u32) -> Self {
        Self {
            root,
            owner: (uid, gid),
        }
    }

    /// A file or directory to copy out of the container.
    ///
    /// # Errors
    /// It is not there.
    pub fn source(&self, path: &[u8]) -> Result<Source, FilesError> {
        Source::find(Root::Container(self.root.as_fd()), &absolute(path))
    }

    /// A destination in the container. New files belong to the container's root user.
    ///
    /// # Errors
    /// The directory is not there.
    pub fn destination(&self, path: &[u8]) -> Result<Destination, FilesError> {
        let root = Root::Container(self.root.as_fd());
        let place = Destination::find(root, &absolute(path))?;
        Ok(place.owned_by(self.owner.0, self.owner.1))
    }
}

/// Paths in a container are relative to the root: there is no process whose working directory could
/// be meant.
fn absolute(path: &[u8]) -> Vec<u8> {
    match path {
        [b'/', ..] => path.to_vec(),
        _ => [b"/", path].concat(),
    }
}

/// The host's ID of the container's ID 0, from `/proc/PID/uid_map` or `gid_map`; 0 if it is not
/// mapped, and then no file of the container can belong to it.
fn host_id(map: &str) -> u32 {
    map.lines()
        .filter_map(|line| {
            let mut numbers = line.split_ascii_whitespace();
            let inside = numbers.next()?;
            (inside == "0").then(|| numbers.next()?.parse().ok())?
        })
        .next()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_belong_to_the_root_user_of_the_container() {
        for (map, expected) in [
            ("         0          0 4294967295\n", 0),
            ("         0     131072      65536\n", 131_072),
            (
                "      1000       5000          1\n         0     131072       1000\n",
                131_072,
            ),
            ("      1000       5000          1\n", 0),
            ("", 0),
        ] {
            assert_eq!(host_id(map), expected, "{map}");
        }
    }
}
