//! Network namespaces. A thread that enters one never returns: it is created for that and exits.

use std::{
    fs::File,
    io,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    thread,
};

use rustix::{
    fs::fstatfs,
    thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe},
};

use crate::netlink::{Link, NetlinkError, RouteSocket};

/// The file system type that `statfs` reports for a namespace's file.
const NSFS_MAGIC: u64 = 0x6e73_6673;

/// The stack of the thread that enters a namespace, in bytes.
const STACK: usize = 256 * 1024;

/// Maximum number of interfaces of a pod that are read.
const MOST_INTERFACES: usize = 256;

/// Why a network namespace can't be used.
#[derive(Debug, thiserror::Error)]
pub enum NetnsError {
    /// No namespace is bound there.
    #[error("there is no network namespace at {}", path.display())]
    Missing {
        /// Where.
        path: PathBuf,
    },
    /// It can't be opened.
    #[error("cannot open the network namespace {}", path.display())]
    Open {
        /// Where.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// It can't be created.
    #[error("cannot make a network namespace")]
    Create(#[source] io::Error),
    /// It can't be entered.
    #[error("cannot enter a network namespace")]
    Enter(#[source] io::Error),
    /// Its interfaces can't be read.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
}

/// Opens the network namespace that is bound to a path.
///
/// # Errors
/// The path does not exist, or is an ordinary file: the remainder of a namespace after a reboot, or
/// after it was unbound.
pub fn open(path: &Path) -> Result<OwnedFd, NetnsError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(NetnsError::Missing {
                path: path.to_owned(),
            });
        }
        Err(source) => {
            return Err(NetnsError::Open {
                path: path.to_owned(),
                source,
            });
        }
    };
    let kind = fstatfs(&file).map_err(|errno| NetnsError::Open {
        path: path.to_owned(),
        source: errno.into(),
    })?;
    if u64::try_from(kind.f_type).ok() != Some(NSFS_MAGIC) {
        return Err(NetnsError::Missing {
            path: path.to_owned(),
        });
    }
    Ok(file.into())
}

/// Creates a network namespace. It exists as long as the descriptor, or a process in it; its
/// loopback interface is down.
///
/// # Errors
/// The kernel returns an error, for lack of privileges or because of a limit.
pub fn create() -> Result<OwnedFd, NetnsError> {
    let make = || {
        leave()?;
        Ok(File::open("/proc/thread-self/ns/net")?.into())
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("netns".to_owned())
            .stack_size(STACK)
            .spawn_scoped(scope, make)?;
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
    .map_err(NetnsError::Create)
}

#[expect(unsafe_code, reason = "unsharing can break what other code relies on")]
fn leave() -> io::Result<()> {
    // SAFETY: only descriptors and directories shared between threads could be torn apart; a network
    // namespace alone touches neither, and the thread ends right after.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.map_err(io::Error::from)
}

/// Runs `act` on a dedicated thread in the namespace. Sockets that are opened there stay there
/// wherever they are used.
///
/// # Errors
/// The namespace can't be entered, or no thread can be created.
///
/// # Panics
/// `act` does.
pub fn within<T: Send>(netns: impl AsFd, act: impl FnOnce() -> T + Send) -> Result<T, NetnsError> {
    let netns = netns.as_fd();
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("netns".to_owned())
            .stack_size(STACK)
            .spawn_scoped(scope, || {
                move_into_link_name_space(netns, Some(LinkNameSpaceType::Network))
                    .map_err(|errno| NetnsError::Enter(errno.into()))?;
                Ok(act())
            })
            .map_err(NetnsError::Enter)?;
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Opens a socket for rtnetlink inside.
///
/// # Errors
/// The namespace can't be entered, or the kernel returns an error.
pub fn route_socket(netns: impl AsFd) -> Result<RouteSocket, NetnsError> {
    Ok(within(netns, RouteSocket::open)??)
}

/// The interfaces inside, with their traffic as the pod sees it; at most the first 256.
///
/// # Errors
/// The namespace can't be entered, or the kernel returns an error.
pub fn interfaces(path: &Path) -> Result<Vec<Link>, NetnsError> {
    let socket = route_socket(open(path)?)?;
    Ok(socket.first_links(MOST_INTERFACES)?)
}
