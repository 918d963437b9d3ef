//! The peer of a connection.

use std::{fs, net::IpAddr, os::unix::fs::MetadataExt as _};

use tokio::net::UnixStream;

use crate::admission::PeerSource;

/// The client of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    trusted: bool,
    credentials: Option<Credentials>,
    address: Option<IpAddr>,
}

/// The peer of a unix socket, as the kernel recorded it at connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Credentials {
    /// The user.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// The process that connected, where the kernel knows it.
    pub pid: Option<i32>,
}

impl Peer {
    /// An unauthenticated peer.
    pub const UNAUTHENTICATED: Self = Self {
        trusted: false,
        credentials: None,
        address: None,
    };

    /// The user at the other end, as the kernel reports it.
    #[must_use]
    pub fn of(stream: &UnixStream) -> Self {
        let Ok(peer) = stream.peer_cred() else {
            return Self::UNAUTHENTICATED;
        };
        let credentials = Credentials {
            uid: peer.uid(),
            gid: peer.gid(),
            pid: peer.pid(),
        };
        Self::user(credentials, own_uid())
    }

    /// A client at that address.
    #[must_use]
    pub fn at(address: IpAddr) -> Self {
        Self {
            address: Some(address.to_canonical()),
            ..Self::UNAUTHENTICATED
        }
    }

    /// A user, and the one that this process runs as.
    fn user(credentials: Credentials, own: Option<u32>) -> Self {
        let uid = credentials.uid;
        Self {
            trusted: uid == 0 || own == Some(uid),
            credentials: Some(credentials),
            address: None,
        }
    }

    /// The user, on a unix socket.
    #[must_use]
    pub fn credentials(&self) -> Option<Credentials> {
        self.credentials
    }

    /// The address, on a network.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// The source whose share this connection counts against.
    pub(crate) fn source(&self) -> PeerSource {
        match (self.credentials, self.address) {
            (Some(credentials), _) => PeerSource::Uid(credentials.uid),
            (None, Some(address)) => PeerSource::of(address),
            (None, None) => PeerSource::Unknown,
        }
    }

    /// True for root, and for the user that the agent runs as. A container can be given every right
    /// on the machine; the group of the socket is not meant to have that.
    #[must_use]
    pub fn may_add_containers(self) -> bool {
        self.trusted
    }
}

/// The user that this process runs as.
fn own_uid() -> Option<u32> {
    // /proc/PID is owned by the process's effective user.
    fs::metadata("/proc/self").ok().map(|own| own.uid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_root_and_the_agents_own_user_may_add_containers() {
        for (uid, own, may) in [
            (0, Some(0), true),
            (0, Some(1000), true),
            (0, None, true),
            (1000, Some(1000), true),
            (1000, Some(0), false),
            (1000, None, false),
        ] {
            let credentials = Credentials {
                uid,
                gid: uid,
                pid: None,
            };
            assert_eq!(
                Peer::user(credentials, own).may_add_containers(),
                may,
                "{uid} {own:?}"
            );
        }
        assert!(!Peer::UNAUTHENTICATED.may_add_containers());
    }

    #[tokio::test]
    async fn this_process_may() {
        let (one, _other) = UnixStream::pair().unwrap();
        assert!(Peer::of(&one).may_add_containers());
    }
}
