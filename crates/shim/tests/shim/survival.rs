//! Agents come and go; the shim and its containers stay.

use std::{fs, os::fd::AsFd as _};

use rubelet_cgroup_plan::CgroupPath;
use rubelet_shim::{
    client::Client,
    protocol::{Call, ContainerPhase, Event, RuntimeChoice, SandboxSetup, ShmMount, SignalTarget},
    spawn,
};

use crate::fixture::{self, PATIENCE, Recipe, Shim, ends_within, wait_until, with_each_runtime};

#[test]
fn events_without_an_agent_are_reported_to_the_next() {
    with_each_runtime("reconnect", |shim| {
        let go = "while [ ! -e /go ]; do sleep 0.01; done; echo alone; exit 6";
        let pid = shim.run("c", go, Recipe::default());
        shim.run("d", "sleep 1000", Recipe::default());
        // The agent dies: its connection ends, and another one that asks is no subscriber.
        let doctor = spawn::connect(shim.path()).unwrap();
        shim.client = Client::new(doctor, false, PATIENCE).unwrap();
        fs::write(shim.bundle("c").join("rootfs/go"), "").unwrap();
        wait_until("the exit record", || {
            shim.bundle("c").join("exit.json").exists()
        });

        for _ in 0..2 {
            // It is reported again until it is acknowledged.
            shim.reconnect();
            let (sequence, event) = shim.client.event().unwrap();
            assert_eq!(sequence, 1);
            let Event::Exited { container, exit } = event else {
                panic!("{event:?}");
            };
            assert_eq!((container.as_str(), exit.exit_code), ("c", 6));
        }
        shim.client.ack(1).unwrap();
        let state = shim.state();
        assert_eq!((state.pid, state.sequence), (shim.pid, 1));
        assert_eq!(state.sandbox.unwrap().setup.id, "pod");
        let phase = |id: &str| {
            state
                .containers
                .iter()
                .find(|one| one.id == id)
                .unwrap()
                .phase
        };
        assert_eq!(phase("c"), ContainerPhase::Exited);
        assert_eq!(phase("d"), ContainerPhase::Running);
        let first = state.containers.iter().find(|one| one.id == "c").unwrap();
        assert_eq!(first.pid, pid);
        assert_eq!(shim.lines("c"), ["alone"]);

        shim.reconnect();
        shim.signal("d", libc::SIGKILL, SignalTarget::Everyone);
        let (sequence, _) = shim.client.event().unwrap();
        assert_eq!(sequence, 2, "the first one is not told again");
    });
}

#[test]
fn signals_that_end_an_agents_session_do_not_end_the_shim() {
    let mut shim = Shim::start("signals", RuntimeChoice::Embedded);
    shim.make_sandbox();
    for signal in [
        libc::SIGHUP,
        libc::SIGTERM,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGPIPE,
        libc::SIGUSR1,
    ] {
        let signal = rustix::process::Signal::from_named_raw(signal).unwrap();
        rustix::process::pidfd_send_signal(&shim.pidfd, signal).unwrap();
        shim.state();
    }
    let stat = fs::read_to_string(format!("/proc/{}/stat", shim.pid)).unwrap();
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .unwrap()
        .1
        .split_whitespace()
        .collect();
    assert_eq!(
        fields[3],
        shim.pid.to_string(),
        "it is a session of its own"
    );
    let cgroup = fs::read_to_string(format!("/proc/{}/cgroup", shim.pid)).unwrap();
    assert!(cgroup.contains("-signals/shim"), "{cgroup}");
}

#[test]
fn a_shim_that_holds_nothing_ends_with_its_agent() {
    let dir = tempfile::tempdir().unwrap();
    let cgroup = CgroupPath::parse(&format!("/rbt-shim-{}-empty", std::process::id())).unwrap();
    let spawned = fixture::spawn(dir.path(), &cgroup);
    let client = Client::new(spawned.socket, true, PATIENCE).unwrap();
    let other = Client::new(spawn::connect(dir.path()).unwrap(), false, PATIENCE).unwrap();
    drop(client);
    let mut other = other;
    other.call(Call::State, &[]).unwrap();
    drop(other);
    assert!(ends_within(&spawned.pidfd, PATIENCE));
    assert!(spawn::reap(spawned.pidfd.as_fd()).unwrap());
    assert!(spawn::connect(dir.path()).is_err_and(|error| error.is_gone()));
    fixture::remove_cgroups(&cgroup);
}

#[test]
fn a_second_shim_in_the_same_directory_gives_up() {
    let shim = Shim::start("second", RuntimeChoice::Embedded);
    let cgroup = shim.cgroup.clone();
    let second = fixture::spawn(shim.path(), &cgroup);
    let refused = Client::new(second.socket, true, PATIENCE);
    assert!(refused.is_err_and(|error| error.to_string().contains("another shim")));
    assert!(ends_within(&second.pidfd, PATIENCE));
    spawn::reap(second.pidfd.as_fd()).unwrap();
}

#[test]
fn the_directory_of_a_shim_may_have_a_long_path() {
    let mut shim = Shim::start(&"long".repeat(50), RuntimeChoice::Embedded);
    assert!(shim.path().as_os_str().len() > 200);
    shim.reconnect();
    shim.state();
}

#[test]
fn the_sandbox_has_its_namespaces_and_mounts_until_the_shutdown() {
    use rubelet_oci::NamespaceKind::{Ipc, Network, Pid, Uts};
    let mut shim = Shim::start("sandbox", RuntimeChoice::Embedded);
    let (net, shm) = (shim.path().join("net"), shim.path().join("shm"));
    let setup = SandboxSetup {
        id: "pod".into(),
        namespaces: vec![Network, Ipc, Uts, Pid],
        hostname: "rubelet-t".into(),
        bind_net: Some(net.clone()),
        shm: Some(ShmMount {
            path: shm.clone(),
            size_bytes: 1 << 20,
        }),
        cgroup: Some(shim.cgroup.join("pause").unwrap()),
        ..SandboxSetup::default()
    };
    shim.call(Call::MakeSandbox(Box::new(setup.clone())))
        .unwrap();
    let sandbox = shim.state().sandbox.unwrap();
    assert_eq!(sandbox.setup, setup);
    let pause = sandbox.pause_pid.unwrap();
    let cgroup = fs::read_to_string(format!("/proc/{pause}/cgroup")).unwrap();
    assert!(cgroup.contains("-sandbox/pause"), "{cgroup}");
    let inode = |path: &std::path::Path| {
        use std::os::unix::fs::MetadataExt as _;
        fs::metadata(path).unwrap().ino()
    };
    assert_eq!(inode(&net), inode(sandbox.namespace(Network).unwrap()));
    for (kind, name) in [(Network, "net"), (Ipc, "ipc"), (Uts, "uts")] {
        let own = format!("/proc/self/ns/{name}");
        let path = sandbox.namespace(kind).unwrap();
        assert_ne!(inode(path), inode(own.as_ref()), "{name}");
    }
    fs::write(shm.join("x"), vec![0; 1 << 20]).unwrap();
    assert!(fs::write(shm.join("y"), vec![0; 1 << 20]).is_err());

    let handle = rustix::process::pidfd_open(
        rustix::process::Pid::from_raw(pause).unwrap(),
        rustix::process::PidfdFlags::empty(),
    )
    .unwrap();
    shim.call(Call::Shutdown).unwrap();
    assert!(ends_within(&shim.pidfd, PATIENCE));
    assert!(ends_within(&handle, PATIENCE));
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(shim.path().to_str().unwrap()));
}

#[test]
fn the_exit_of_the_pause_process_is_reported() {
    let mut shim = Shim::start("pause", RuntimeChoice::Embedded);
    let setup = SandboxSetup {
        namespaces: vec![rubelet_oci::NamespaceKind::Pid],
        ..SandboxSetup::default()
    };
    shim.call(Call::MakeSandbox(Box::new(setup))).unwrap();
    let pause = shim.state().sandbox.unwrap().pause_pid.unwrap();
    let pause = rustix::process::Pid::from_raw(pause).unwrap();
    let handle = rustix::process::pidfd_open(pause, rustix::process::PidfdFlags::empty()).unwrap();
    rustix::process::pidfd_send_signal(&handle, rustix::process::Signal::KILL).unwrap();
    let (_, event) = shim.client.event().unwrap();
    assert!(matches!(event, Event::PauseExited { .. }), "{event:?}");
    assert_eq!(shim.state().sandbox.unwrap().pause_pid, None);
}

#[test]
fn orphans_are_reaped_without_events() {
    with_each_runtime("orphans", |shim| {
        let recipe = Recipe {
            host_pids: true,
            ..Recipe::default()
        };
        shim.run(
            "c",
            "for i in 1 2 3 4 5; do (sleep 0.01 &); done; sleep 0.2; echo end; sleep 1000",
            recipe,
        );
        shim.wait_for_line("c", "end");
        let shim_pid = shim.pid;
        wait_until("no zombie below the shim", || {
            let path = format!("/proc/{shim_pid}/task/{shim_pid}/children");
            let children = fs::read_to_string(path).unwrap();
            children.split_whitespace().count() == 1
        });
        assert_eq!(shim.state().sequence, 0);
    });
}

/// How often a process was on a processor, and its memory that is its own in KiB.
fn footprint(pid: i32) -> (u64, u64) {
    let number = |file: &str, name: &str| -> u64 {
        let text = fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap();
        let lines = text.lines().filter_map(|line| line.strip_prefix(name));
        lines
            .map(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().unwrap())
            .sum()
    };
    let switches = number("status", "voluntary_ctxt_switches:");
    (switches, number("smaps_rollup", "Anonymous:"))
}

#[test]
fn an_idle_shim_never_wakes_up_and_is_small() {
    with_each_runtime("idle", |shim| {
        shim.run("c", "seq 1000; echo ready; sleep 1000", Recipe::default());
        shim.wait_for_line("c", "ready");
        for _ in 0..3 {
            shim.reconnect();
            shim.state();
        }
        let pid = shim.pid;
        let moment = || {
            let timer = rustix::event::Timespec {
                tv_sec: 0,
                tv_nsec: 300_000_000,
            };
            rustix::event::poll(&mut [], Some(&timer)).unwrap();
        };
        moment();
        let before = footprint(pid);
        moment();
        let after = footprint(pid);
        eprintln!("{} KiB", after.1);
        assert_eq!(before.0, after.0, "it woke up");
        assert!(after.1 <= 1536, "{} KiB", after.1);
    });
}

#[test]
fn an_unrecorded_exit_is_reported_and_recorded_later() {
    let mut shim = Shim::start("unrecorded", RuntimeChoice::Embedded);
    shim.make_sandbox();
    let record = shim.bundle("c").join("exit.json");
    shim.create("c", "exit 3", Recipe::default());
    fs::create_dir(&record).unwrap();
    shim.call(Call::Start { id: "c".into() }).unwrap();
    assert_eq!(shim.exit("c").exit_code, 3);
    let warnings = shim.state().warnings;
    assert!(
        warnings.iter().any(|text| text.contains("exit record")),
        "{warnings:?}"
    );
    fs::remove_dir(&record).unwrap();
    shim.reconnect();
    shim.state();
    let read = rubelet_shim::exit_record::read(&shim.bundle("c")).unwrap();
    assert_eq!(read.map(|exit| exit.exit_code), Some(3));
}
