//! Namespaces that the containers of a pod share.

use std::{
    collections::BTreeMap,
    os::fd::{AsFd, OwnedFd},
};

use rubelet_container::{NamespaceOptions, make_namespaces};
use rubelet_oci::{NamespaceKind, Spec};
use rustix::process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};

use crate::{
    Case,
    fixture::{ContainerFixture, process, script},
};

pub(crate) const CASES: &[Case] = &[
    ("pods::shared_namespaces", shared_namespaces),
    ("pods::shared_processes", shared_processes),
    ("pods::processes_of_a_target", processes_of_a_target),
    ("pods::host_namespaces", host_namespaces),
    ("pods::refusals", refusals),
];

/// Takes these namespaces from the pod instead of making new ones.
pub(crate) fn from_pod(spec: &mut Spec, kinds: &[NamespaceKind]) {
    for namespace in &mut spec.linux.namespaces {
        if kinds.contains(&namespace.kind) {
            namespace.path = Some("/the/pods/own".into());
        }
    }
}

fn link(fd: &OwnedFd) -> String {
    use std::os::fd::AsRawFd;
    let link = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()));
    link.unwrap().to_str().unwrap().to_owned()
}

fn wanted() -> NamespaceOptions {
    NamespaceOptions {
        net: true,
        ipc: true,
        uts: true,
        hostname: "pod".to_owned(),
        ..NamespaceOptions::default()
    }
}

fn shared_namespaces() {
    let place = ContainerFixture::new();
    let mut wanted = wanted();
    wanted.sysctls = BTreeMap::from(
        [
            ("net.ipv4.ip_unprivileged_port_start", "81"),
            ("net/ipv4/conf/lo/forwarding", "1"),
            ("kernel.shm_rmid_forced", "1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned())),
    );
    let pod = make_namespaces(&wanted).unwrap();
    assert!(pod.pause.is_none());
    let mut spec = script(
        "hostname; for n in net ipc uts; do readlink /proc/self/ns/$n; done; ip addr show lo | grep -c 127.0.0.1; \
         cd /proc/sys; cat net/ipv4/ip_unprivileged_port_start net/ipv4/conf/lo/forwarding kernel/shm_rmid_forced",
    );
    from_pod(
        &mut spec,
        &[
            NamespaceKind::Network,
            NamespaceKind::Ipc,
            NamespaceKind::Uts,
        ],
    );
    for _ in 0..2 {
        let outcome = place.run_in(&spec, pod.joined(), None).unwrap();
        let namespaces = [&pod.net, &pod.ipc, &pod.uts].map(|fd| link(fd.as_ref().unwrap()));
        let wanted = format!("pod\n{}\n1\n81\n1\n1\n", namespaces.join("\n"));
        assert_eq!(outcome.stdout, wanted, "{outcome:?}");
    }
}

/// Some seconds of looking.
const LOOKS: usize = 1_000_000;

fn shared_processes() {
    let place = ContainerFixture::new();
    let mut wanted = wanted();
    wanted.pid = true;
    let pod = make_namespaces(&wanted).unwrap();
    let pause = pod.pause.as_ref().unwrap();
    place.target.add(pause.pid).unwrap();
    let mut spec = script("echo; sleep 1000");
    from_pod(&mut spec, &[NamespaceKind::Pid]);
    let first = place.start(&spec, pod.joined());
    let mut second = script("cat /proc/1/comm; ps | grep -c 'sleep 1000$'; sleep 0 & echo $$");
    from_pod(&mut second, &[NamespaceKind::Pid]);
    let outcome = place.run_in(&second, pod.joined(), None).unwrap();
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(lines[..2], ["pause", "1"], "{outcome:?}");
    assert!(lines[2].parse::<u32>().unwrap() > 2);
    let outcome = place
        .exec(&first, &spec, &process(&["cat", "/proc/1/comm"]))
        .unwrap();
    assert_eq!(outcome.stdout, "pause\n");
    // Nothing of this program is left in the pause process: no descriptor, no zombie.
    let of_pause = |name: &str| format!("/proc/{}/{name}", pause.pid);
    assert_eq!(std::fs::read_dir(of_pause("fd")).unwrap().count(), 3);
    let children = of_pause(&format!("task/{}/children", pause.pid));
    // It reaps on its own time.
    let reaped = (0..LOOKS).any(|_| {
        std::thread::yield_now();
        std::fs::read_to_string(&children).unwrap().is_empty()
    });
    assert!(reaped, "{}", std::fs::read_to_string(&children).unwrap());
    pidfd_send_signal(&pause.pidfd, Signal::KILL).unwrap();
    // With the first process of the namespace all others end; it is gone when they are reaped.
    waitid(WaitId::PidFd(first.pidfd.as_fd()), WaitIdOptions::EXITED).unwrap();
    waitid(WaitId::PidFd(pause.pidfd.as_fd()), WaitIdOptions::EXITED).unwrap();
    let error = place.run_in(&second, pod.joined(), None).unwrap_err();
    assert!(error.contains("not running"), "{error}");
}

fn processes_of_a_target() {
    let place = ContainerFixture::new();
    let spec = script("echo; sleep 1000");
    let target = place.start(&spec, Default::default());
    let mut debug = script("cat /proc/1/comm; kill -9 1");
    let of_target = format!("/proc/{}/ns/pid", target.pid);
    for namespace in &mut debug.linux.namespaces {
        if namespace.kind == NamespaceKind::Pid {
            namespace.path = Some(of_target.clone().into());
        }
    }
    // The first process of a namespace can't be killed from inside.
    let outcome = place.run(&debug).unwrap();
    assert_eq!(outcome.stdout, "sleep\n", "{outcome:?}");
    target.kill();
}

fn host_namespaces() {
    let place = ContainerFixture::new();
    let mut spec = script("for n in net ipc uts pid; do readlink /proc/self/ns/$n; done");
    let own = [NamespaceKind::Mount, NamespaceKind::Cgroup];
    spec.linux.namespaces.retain(|one| own.contains(&one.kind));
    let outcome = place.run(&spec).unwrap();
    for (line, name) in outcome.stdout.lines().zip(["net", "ipc", "uts", "pid"]) {
        let hosts = std::fs::read_link(format!("/proc/self/ns/{name}")).unwrap();
        assert_eq!(line, hosts.to_str().unwrap());
    }
    let outcome = place.exec(
        &place.start(
            &{
                let mut spec = spec.clone();
                spec.process.args[2] = "echo; sleep 1000".to_owned();
                spec
            },
            Default::default(),
        ),
        &spec,
        &process(&["readlink", "/proc/self/ns/pid"]),
    );
    let hosts = std::fs::read_link("/proc/self/ns/pid").unwrap();
    assert_eq!(outcome.unwrap().stdout.trim(), hosts.to_str().unwrap());
}

fn refusals() {
    let refused = |wanted: &NamespaceOptions| make_namespaces(wanted).unwrap_err().to_string();
    let mut wanted = wanted();
    wanted.uts = false;
    assert!(refused(&wanted).contains("host's own UTS namespace"));
    wanted.hostname = String::new();
    wanted.sysctls = BTreeMap::from([("vm.swappiness".to_owned(), "1".to_owned())]);
    assert!(refused(&wanted).contains("vm.swappiness does not belong to"));
    wanted.sysctls = BTreeMap::from([("net.ipv4.no_such".to_owned(), "1".to_owned())]);
    assert!(
        refused(&wanted)
            .contains("cannot set the kernel parameter net.ipv4.no_such to \"1\": no such file"),
        "{}",
        refused(&wanted)
    );
    // Nothing is left behind of what was refused.
    assert!(waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG).is_err());
}
