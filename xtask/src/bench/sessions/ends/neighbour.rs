//! A client on another machine, for its network to be cut: a network namespace with a link to this one.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpStream},
    process::Command,
    sync::mpsc::{Receiver, Sender, channel},
    thread,
};

use anyhow::{Context as _, Result};
use nix::sched::{CloneFlags, unshare};
use rubelet_testbed::command::stdout_of;

/// The address of this machine on the link, in the network for benchmarks of RFC 2544.
pub(super) const NODE: Ipv4Addr = Ipv4Addr::new(198, 18, 77, 1);
const OWN: Ipv4Addr = Ipv4Addr::new(198, 18, 77, 2);

/// The two ends of the link.
const LINK: &str = "rbltends";
const PEER: &str = "rbltendspeer";

/// The namespace goes with its thread, which ends with this, and the link with the namespace.
pub(super) struct Neighbour {
    targets: Sender<SocketAddr>,
    connected: Receiver<io::Result<TcpStream>>,
}

impl Neighbour {
    pub(super) fn start() -> Result<Self> {
        // Of a run that was killed.
        let _ = ip(&["link", "delete", LINK]);
        let (targets, target) = channel::<SocketAddr>();
        let (connect, connected) = channel();
        let (ready, readied) = channel();
        let (linked, link) = channel();
        thread::spawn(move || {
            let entered = enter();
            let failed = entered.is_err();
            if ready.send(entered).is_err() || failed || link.recv().is_err() {
                return;
            }
            if ready.send(set_up(PEER, OWN).map(|()| 0)).is_err() {
                return;
            }
            for target in target {
                if connect.send(TcpStream::connect(target)).is_err() {
                    return;
                }
            }
        });
        let thread = readied.recv()??.to_string();
        let veth = ["link", "add", LINK, "type", "veth"];
        ip(&[&veth[..], &["peer", "name", PEER, "netns", &thread]].concat())?;
        set_up(LINK, NODE)?;
        linked.send(())?;
        readied.recv()??;
        Ok(Self { targets, connected })
    }

    /// A connection from there, for tokio.
    pub(super) fn connect(&self, target: SocketAddr) -> Result<TcpStream> {
        self.targets.send(target)?;
        let stream = self.connected.recv()??;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }

    /// Removes the link; nobody is told.
    pub(super) fn cut(self) -> Result<()> {
        ip(&["link", "delete", LINK])
    }
}

/// Moves this thread into a network namespace of its own; its thread ID.
fn enter() -> Result<u32> {
    unshare(CloneFlags::CLONE_NEWNET)?;
    let thread = std::fs::read_link("/proc/thread-self")?;
    let name = thread.file_name().and_then(|name| name.to_str());
    Ok(name.context("a thread has no number")?.parse()?)
}

fn set_up(link: &str, address: Ipv4Addr) -> Result<()> {
    ip(&["address", "add", &format!("{address}/30"), "dev", link])?;
    ip(&["link", "set", link, "up"])
}

fn ip(words: &[&str]) -> Result<()> {
    stdout_of(Command::new("ip").args(words)).map(drop)
}
