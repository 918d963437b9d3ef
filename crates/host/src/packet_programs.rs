//! Packet filters beside nftables that leave no trace there: programs at an interface, and
//! the tables of iptables-legacy.

use std::{fmt, fs};

use crate::{
    bpf,
    netlink::{Link, RouteSocket},
};

/// `BPF_TCX_INGRESS`, `BPF_TCX_EGRESS`, `BPF_NETKIT_PRIMARY`, `BPF_NETKIT_PEER`.
const ATTACH_TYPES: [u32; 4] = [46, 47, 54, 55];

/// Something that may drop packets, and how a user lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PacketProgram {
    /// An XDP program at the interface.
    Xdp(String),
    /// Classifiers of tc at the interface.
    Classifier(String),
    /// BPF programs at the interface, of the kinds tcx and netkit.
    Bpf(String),
    /// Tables of iptables-legacy.
    LegacyTables(Vec<String>),
}

impl fmt::Display for PacketProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Xdp(link) => write!(f, "an XDP program of {link} (`ip -d link show {link}`)"),
            Self::Classifier(link) => {
                write!(
                    f,
                    "tc filters of {link} (`tc filter show dev {link} ingress`, and egress)"
                )
            }
            Self::Bpf(link) => write!(f, "BPF programs of {link} (`bpftool net show dev {link}`)"),
            Self::LegacyTables(tables) => write!(
                f,
                "iptables-legacy, which has the tables {} (`iptables-legacy-save -c`)",
                tables.join(", ")
            ),
        }
    }
}

/// Programs of an interface in the network namespace of the calling thread. What this kernel or this
/// process can't read counts as absent.
#[must_use]
pub fn of_link(link: &Link) -> Vec<PacketProgram> {
    let mut programs = Vec::new();
    if let Ok(mut route) = RouteSocket::open() {
        if route.has_xdp(link.index).unwrap_or_default() {
            programs.push(PacketProgram::Xdp(link.name.clone()));
        }
        if route.has_classifiers(link.index).unwrap_or_default() {
            programs.push(PacketProgram::Classifier(link.name.clone()));
        }
    }
    let has_programs = |attach_type: &u32| {
        bpf::attached_to_link(link.index, *attach_type).is_ok_and(|ids| !ids.is_empty())
    };
    if ATTACH_TYPES.iter().any(has_programs) {
        programs.push(PacketProgram::Bpf(link.name.clone()));
    }
    programs
}

/// Tables of iptables-legacy in the network namespace of the calling thread. The kernel adds a table
/// when it is first used.
#[must_use]
pub fn legacy_tables() -> Option<PacketProgram> {
    let names = ["ip_tables_names", "ip6_tables_names"].map(|file| {
        // That of the thread: the process may be in another namespace.
        fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap_or_default()
    });
    let mut tables: Vec<String> = names
        .iter()
        .flat_map(|names| names.split_whitespace())
        .map(str::to_owned)
        .collect();
    tables.sort();
    tables.dedup();
    (!tables.is_empty()).then_some(PacketProgram::LegacyTables(tables))
}

#[cfg(test)]
mod tests {
    use std::{os::fd::AsFd as _, process::Command};

    use super::*;
    use crate::{bpf::Instruction, netlink::Changes, netns};

    /// `BPF_PROG_TYPE_SCHED_CLS`
    const CLASSIFIER: u32 = 3;

    /// Runs a program of Debian; whether it succeeded.
    fn run(line: &str) -> bool {
        let words: Vec<&str> = line.split(' ').collect();
        Command::new(words[0])
            .args(&words[1..])
            .output()
            .is_ok_and(|done| done.status.success())
    }

    /// Runs a test in a network namespace of its own, with its loopback interface.
    fn with_loopback(test: impl FnOnce(&Link) + Send) {
        if !rubelet_needs::root() {
            return;
        }
        let namespace = netns::create().unwrap();
        netns::within(&namespace, || {
            let mut route = RouteSocket::open().unwrap();
            let mut changes = Changes::default();
            changes.set_up("lo");
            route
                .apply(changes, || "start loopback".to_owned())
                .unwrap();
            let lo = route.link("lo").unwrap().unwrap();
            assert_eq!(of_link(&lo), []);
            assert_eq!(legacy_tables(), None);
            test(&lo);
        })
        .unwrap();
    }

    #[test]
    fn bpf_programs_of_an_interface_are_found() {
        with_loopback(|lo| {
            // `r0 = TCX_PASS; exit`
            let instruction = |code, immediate| Instruction {
                code,
                registers: 0,
                offset: 0,
                immediate,
            };
            let passes = [instruction(0xb7, 0), instruction(0x95, 0)];
            let program = bpf::load_as(CLASSIFIER, 0, &passes).unwrap();
            let attached = bpf::attach_to_link(lo.index, ATTACH_TYPES[1], program.as_fd());
            let unknown = attached
                .as_ref()
                .is_err_and(|error| error.raw_os_error() == Some(libc::EINVAL));
            if !rubelet_needs::applies(!unknown, "this kernel has no tcx (Linux 6.6)") {
                return;
            }
            attached.unwrap();
            assert_eq!(of_link(lo), [PacketProgram::Bpf("lo".to_owned())]);
        });
    }

    #[test]
    fn classifiers_of_an_interface_are_found() {
        with_loopback(|lo| {
            assert!(run("tc qdisc add dev lo clsact"));
            assert_eq!(of_link(lo), [], "a place without classifiers");
            let added = run("tc filter add dev lo ingress u32 match u32 0 0");
            if !rubelet_needs::applies(added, "this kernel has no classifier u32") {
                return;
            }
            assert_eq!(of_link(lo), [PacketProgram::Classifier("lo".to_owned())]);
        });
    }

    #[test]
    fn tables_of_iptables_legacy_are_found() {
        with_loopback(|_| {
            let version = run("iptables-legacy --version");
            if !rubelet_needs::have(version, "iptables-legacy") {
                return;
            }
            let listed = run("iptables-legacy -t mangle -S");
            if !rubelet_needs::applies(listed, "this kernel has no tables of iptables-legacy") {
                return;
            }
            let tables = PacketProgram::LegacyTables(vec!["mangle".to_owned()]);
            assert_eq!(legacy_tables(), Some(tables));
        });
    }
}
