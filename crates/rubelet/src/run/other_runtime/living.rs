//! Pods of another runtime, found by the processes in the cgroups of pods and their supervisors.
//! The daemon need not respond, or exist.
//!
//! A supervisor is never looked for among the processes of pods: those may call themselves what they
//! like.

use std::{collections::BTreeSet, fmt, fs, iter::successors, path::Path};

use rubelet_api::resources::QosClass;
use rubelet_base::PodUid;
use rubelet_cgroup_plan::CgroupPath;
use rubelet_host::CgroupFs;
use rubelet_node_plan::CgroupTree;

/// A process of another runtime that supervises processes of pods.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Supervisor {
    /// A shim of containerd, of the daemon at this socket.
    Containerd {
        /// The path of the daemon's socket; empty if the shim's command line does not have it.
        address: String,
        /// containerd's namespace: `k8s.io` for pods of the CRI, `moby` for those of docker.
        namespace: String,
    },
    /// CRI-O's, or podman's.
    Conmon,
}

impl Supervisor {
    /// The supervisor of this command line.
    fn of(arguments: &[String]) -> Option<Self> {
        let program = arguments.first()?.rsplit('/').next()?;
        let option = |name| option(arguments, name);
        if program.starts_with("containerd-shim") {
            return Some(Self::Containerd {
                address: option("-address").unwrap_or_default(),
                namespace: option("-namespace").unwrap_or_default(),
            });
        }
        ["conmon", "conmonrs"]
            .contains(&program)
            .then_some(Self::Conmon)
    }

    /// The identifier of the container or sandbox that it supervises, by its command line.
    fn id(&self, arguments: &[String]) -> Option<String> {
        let name = match self {
            Self::Containerd { .. } => "-id",
            Self::Conmon => "-c",
        };
        option(arguments, name).filter(|id| !id.is_empty())
    }

    /// Whether it works for the runtime behind this socket for certain. Links are followed: `/var/run`
    /// is one to `/run`.
    pub(super) fn is_of(&self, socket: &Path) -> bool {
        let Self::Containerd { address, namespace } = self else {
            return false;
        };
        let same = || Some(fs::canonicalize(address).ok()? == fs::canonicalize(socket).ok()?);
        namespace == "k8s.io" && (Path::new(address) == socket || same().unwrap_or_default())
    }

    /// The endpoint with which its pods go on, as far as it is known.
    pub(super) fn endpoint(&self) -> Option<String> {
        match self {
            Self::Containerd { namespace, .. } if namespace == "moby" => {
                Some("unix:///run/cri-dockerd.sock".to_owned())
            }
            Self::Containerd { address, .. } if address.is_empty() => None,
            Self::Containerd { address, .. } => Some(format!("unix://{address}")),
            Self::Conmon => Some("unix:///run/crio/crio.sock".to_owned()),
        }
    }
}

impl fmt::Display for Supervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Containerd { namespace, .. } if namespace == "moby" => f.write_str("docker"),
            Self::Containerd { .. } => f.write_str("containerd"),
            Self::Conmon => f.write_str("CRI-O"),
        }
    }
}

/// A process of another runtime, and what it supervises.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Supervised {
    pub(super) supervisor: Supervisor,
    /// The identifier of a sandbox or container in its runtime, as the process was started with it.
    pub(super) id: Option<String>,
    /// The pod whose cgroup the supervised process is in.
    pub(super) pod: Option<PodUid>,
    /// The process that supervises.
    pub(super) process: i32,
}

/// The supervisors of processes in the cgroups of pods. Blocks.
pub(super) fn supervisors(cgroups: &CgroupFs, trees: &[CgroupTree]) -> BTreeSet<Supervised> {
    let inside = trees
        .iter()
        .flat_map(|tree| cgroups.readable_processes(tree.kubepods()));
    let inside: BTreeSet<i32> = inside.collect();
    let above = inside.iter().filter_map(|pid| {
        let found = supervisor(*pid, &inside)?;
        let pod = cgroups.of_process(*pid).and_then(|own| pod(trees, own));
        Some(Supervised { pod, ..found })
    });
    above.collect()
}

/// The pod that a cgroup belongs to.
fn pod(trees: &[CgroupTree], cgroup: CgroupPath) -> Option<PodUid> {
    let mut above = successors(Some(cgroup), CgroupPath::parent);
    above.find_map(|path| {
        let tier = path.parent()?;
        let mut places = trees
            .iter()
            .flat_map(|tree| QosClass::ALL.map(|qos| (tree, qos)));
        places.find_map(|(tree, qos)| {
            let is_there = *tree.tier(qos) == tier;
            is_there.then(|| tree.pod_of(qos, path.name())).flatten()
        })
    })
}

/// The supervisor among the ancestors of a process, outside of the cgroups of pods. The process itself tells no pod.
fn supervisor(pid: i32, inside: &BTreeSet<i32>) -> Option<Supervised> {
    let mut at = pid;
    // No chain is longer than there are processes; one that changes meanwhile may be.
    for _ in 0..256 {
        at = parent(at)?;
        if at <= 1 {
            return None;
        }
        if inside.contains(&at) {
            continue;
        }
        let arguments = arguments(at);
        if let Some(supervisor) = Supervisor::of(&arguments) {
            return Some(Supervised {
                id: supervisor.id(&arguments),
                pod: None,
                supervisor,
                process: at,
            });
        }
    }
    None
}

/// The value of an option that is a word of its own.
fn option(arguments: &[String], name: &str) -> Option<String> {
    let at = arguments.iter().position(|argument| argument == name)?;
    arguments.get(at + 1).cloned()
}

/// The fourth field of `stat`, behind the name, which may hold anything.
fn parent(pid: i32) -> Option<i32> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

fn arguments(pid: i32) -> Vec<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = line.split(|byte| *byte == 0);
    words
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Option<Supervisor> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        Supervisor::of(&words)
    }

    #[test]
    fn supervisors_are_known_by_their_command_lines() {
        let k3s = of(
            "/var/lib/rancher/k3s/data/x/bin/containerd-shim-runc-v2 -namespace k8s.io -id \
                      abc -address /run/k3s/containerd/containerd.sock",
        );
        let endpoint = k3s.as_ref().and_then(Supervisor::endpoint);
        let wanted = "unix:///run/k3s/containerd/containerd.sock";
        assert_eq!(endpoint.as_deref(), Some(wanted));
        let docker = of(
            "/usr/bin/containerd-shim-runc-v2 -namespace moby -id abc -address \
                         /run/containerd/containerd.sock",
        );
        let docker = docker.unwrap();
        assert_eq!(docker.to_string(), "docker");
        assert_eq!(
            docker.endpoint().as_deref(),
            Some("unix:///run/cri-dockerd.sock")
        );
        let crio = of("/usr/libexec/crio/conmon -b /run/containers -c abc");
        assert_eq!(crio, Some(Supervisor::Conmon));
        let words = |line: &str| -> Vec<String> { line.split(' ').map(str::to_owned).collect() };
        let id = |of: &Supervisor, line| of.id(&words(line));
        assert_eq!(
            id(&Supervisor::Conmon, "conmon -b /run -c abc").as_deref(),
            Some("abc")
        );
        assert_eq!(
            id(&docker, "shim -namespace moby -id def").as_deref(),
            Some("def")
        );
        assert_eq!(id(&docker, "shim -id"), None);
        for other in [
            "",
            "/usr/bin/rubelet shim --dir /run/rubelet/x",
            "sh -c conmon",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn a_pod_is_known_by_the_cgroup_of_its_processes() {
        let trees = super::super::trees("").unwrap();
        for (path, expected) in [
            ("/kubepods/podu1", Some("u1")),
            ("/kubepods/burstable/podu1/crio-c1", Some("u1")),
            ("/kubepods/besteffort/podu1/c1/nested", Some("u1")),
            (
                "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podu_1.slice/crio-c1.scope",
                Some("u-1"),
            ),
            ("/kubepods/burstable", None),
            ("/other/podu1/c1", None),
            ("/kubepods/burstable/other/podu1", None),
        ] {
            let found = pod(&trees, CgroupPath::parse(path).unwrap());
            assert_eq!(found, expected.map(PodUid::from), "{path}");
        }
    }

    #[test]
    fn a_shim_is_of_the_daemon_whose_socket_it_was_started_with() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("containerd.sock");
        std::os::unix::fs::symlink(dir.path(), dir.path().join("run")).unwrap();
        let shim = |address: &Path, namespace: &str| Supervisor::Containerd {
            address: address.display().to_string(),
            namespace: namespace.to_owned(),
        };
        // Also while the daemon is away.
        assert!(shim(&socket, "k8s.io").is_of(&socket));
        let by_link = dir.path().join("run/containerd.sock");
        assert!(!shim(&by_link, "k8s.io").is_of(&socket));
        fs::write(&socket, "").unwrap();
        assert!(shim(&by_link, "k8s.io").is_of(&socket));
        assert!(!shim(&socket, "moby").is_of(&socket));
        assert!(!Supervisor::Conmon.is_of(&socket));
    }

    #[test]
    fn the_ancestors_of_a_process_are_followed_and_those_in_pods_are_passed_over() {
        let own = i32::try_from(std::process::id()).unwrap();
        let above = parent(own).unwrap();
        assert!(above > 0);
        assert!(!arguments(own).is_empty());
        // Whatever runs this test is no supervisor of pods.
        assert_eq!(supervisor(own, &BTreeSet::new()), None);
    }
}
