//! Who is at the other end of a connection.

use std::{fs, os::unix::fs::MetadataExt as _};

use tokio::net::UnixStream;

/// The client of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer {
    trusted: bool,
}

impl Peer {
    /// Somebody of whom nothing is known.
    pub(crate) const STRANGER: Self = Self { trusted: false };

    /// The user at the other end, as the kernel tells it.
    pub(crate) fn of(stream: &UnixStream) -> Self {
        match (stream.peer_cred(), own_uid()) {
            (Ok(peer), own) => Self::user(peer.uid(), own),
            (Err(_), _) => Self::STRANGER,
        }
    }

    /// A user, and the one as whom this process runs.
    fn user(uid: u32, own: Option<u32>) -> Self {
        Self {
            trusted: uid == 0 || own == Some(uid),
        }
    }

    /// True for root, and for the user as whom the agent runs. A container can be given every right
    /// on the machine; the group of the socket is not meant to have that.
    pub(crate) fn may_add_containers(self) -> bool {
        self.trusted
    }
}

/// The user as whom this process runs.
fn own_uid() -> Option<u32> {
    // A process owns its folder in /proc by its effective user.
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
            assert_eq!(
                Peer::user(uid, own).may_add_containers(),
                may,
                "{uid} {own:?}"
            );
        }
        assert!(!Peer::STRANGER.may_add_containers());
    }

    #[tokio::test]
    async fn this_process_may() {
        let (one, _other) = UnixStream::pair().unwrap();
        assert!(Peer::of(&one).may_add_containers());
    }
}
