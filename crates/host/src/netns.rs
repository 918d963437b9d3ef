//! Network namespaces. A thread that enters one never comes back: it is made for it and ends.

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

/// What `statfs` says of a namespace's file.
const NSFS_MAGIC: u64 = 0x6e73_6673;

/// The stack of the thread that enters a namespace, in bytes.
const STACK: usize = 256 * 1024;

/// How many interfaces of a pod are looked at.
const MOST_INTERFACES: usize = 256;

/// Why a network namespace can't be used.
#[derive(Debug, thiserror::Error)]
pub enum NetnsError {
    /// Nothing is bound there.
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
        /// Why.
        source: io::Error,
    },
    /// There can't be another one.
    #[error("cannot make a network namespace")]
    Create(#[source] io::Error),
    /// It can't be entered.
    #[error("cannot enter a network namespace")]
    Enter(#[source] io::Error),
    /// The interfaces in it can't be seen.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
}

/// Opens the network namespace that is bound to a path.
///
/// # Errors
/// There is nothing, or an ordinary file: what is left of a namespace after a restart of the
/// machine, or once it was unbound.
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

/// Makes a network namespace. It lives as long as the descriptor, or something in it, does; its
/// loopback interface is down.
///
/// # Errors
/// The kernel refuses, for want of rights or of namespaces.
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
    // SAFETY: only descriptors and folders shared between threads could be torn apart; a network
    // namespace alone touches neither, and the thread ends right after.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.map_err(io::Error::from)
}

/// Runs `act` on a thread of its own inside of the namespace. Sockets that are opened there stay there
/// wherever they are used.
///
/// # Errors
/// The namespace can't be entered, or there can't be another thread.
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

/// The interfaces inside, with their traffic as the pod sees it; of many, the first 256.
///
/// # Errors
/// The namespace can't be entered, or the kernel refuses.
pub fn interfaces(path: &Path) -> Result<Vec<Link>, NetnsError> {
    let netns = open(path)?;
    let socket = within(&netns, RouteSocket::open)??;
    Ok(socket.first_links(MOST_INTERFACES)?)
}
