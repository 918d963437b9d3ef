//! From creation to deletion, with each runtime.

use std::fs;

use rubelet_shim::{
    exit_record,
    protocol::{Call, ContainerPhase, FailureKind, RuntimeChoice, SandboxSetup, SignalTarget},
};

use crate::fixture::{
    PATIENCE, Recipe, Shim, assert_failure, cgroups, ends_within, wait_until, with_each_new_shim,
    with_each_runtime,
};

#[test]
fn a_container_starts_writes_its_log_ends_and_is_deleted() {
    with_each_runtime("whole", |shim| {
        let pid = shim.create("c", "echo out; echo err >&2; exit 3", Recipe::default());
        assert!(pid > 1);
        let created = shim.container("c").unwrap();
        assert_eq!(created.phase, ContainerPhase::Created);
        assert_eq!(created.pid, pid);
        assert!(created.created_at_ns > 0 && created.started_at_ns == 0);
        assert!(shim.lines("c").is_empty());

        shim.call(Call::Start { id: "c".into() }).unwrap();
        let exit = shim.exit("c");
        assert_eq!((exit.exit_code, exit.signal), (3, None));
        assert!(exit.started_at_ns > created.created_at_ns && exit.at_ns >= exit.started_at_ns);
        assert!(!exit.oom_killed);
        assert_eq!(
            exit_record::read(&shim.bundle("c")).unwrap(),
            Some(exit.clone())
        );
        let mut log = shim.log("c");
        log.sort();
        assert_eq!(
            log,
            [
                ("stderr".into(), false, "err".into()),
                ("stdout".into(), false, "out".into())
            ]
        );
        let ended = shim.container("c").unwrap();
        assert_eq!(ended.phase, ContainerPhase::Exited);
        assert_eq!(ended.exit, Some(exit));

        shim.delete("c");
        assert_eq!(shim.container("c"), None);
        shim.delete("c");
    });
}

#[test]
fn signals_reach_the_init_or_everyone() {
    with_each_runtime("signal", |shim| {
        let script =
            "trap 'echo usr1' USR1; trap 'exit 7' TERM; echo ready; while :; do sleep 0.02; done";
        shim.run("c", script, Recipe::default());
        shim.wait_for_line("c", "ready");
        shim.signal("c", libc::SIGUSR1, SignalTarget::Init);
        shim.wait_for_line("c", "usr1");
        shim.signal("c", libc::SIGTERM, SignalTarget::Init);
        let exit = shim.exit("c");
        assert_eq!((exit.exit_code, exit.signal), (7, None));
        shim.delete("c");

        shim.run(
            "d",
            "echo ready; sleep 1000 & sleep 1000",
            Recipe::default(),
        );
        shim.wait_for_line("d", "ready");
        shim.signal("d", libc::SIGKILL, SignalTarget::Everyone);
        let exit = shim.exit("d");
        assert_eq!((exit.exit_code, exit.signal), (137, Some(9)));
        let refused = shim.refused(Call::Signal {
            id: "d".into(),
            signal: 15,
            target: SignalTarget::Init,
        });
        assert_failure(&refused, FailureKind::WrongState, "has exited");
    });
}

#[test]
fn without_a_pid_namespace_leftover_processes_are_killed() {
    with_each_runtime("leftover", |shim| {
        let recipe = Recipe {
            host_pids: true,
            ..Recipe::default()
        };
        shim.run("c", "sleep 1000 & echo ready; exec sleep 0.05", recipe);
        assert_eq!(shim.exit("c").exit_code, 0);
        let cgroup = shim.container_cgroup("c");
        wait_until("the end of the rest", || {
            cgroups().processes(&cgroup).unwrap().is_empty()
        });
    });
}

#[test]
fn a_running_container_is_killed_when_it_is_deleted() {
    with_each_runtime("delete", |shim| {
        shim.run("c", "echo ready; sleep 1000", Recipe::default());
        shim.wait_for_line("c", "ready");
        shim.delete("c");
        let cgroup = shim.container_cgroup("c");
        wait_until("the end of its processes", || {
            cgroups().processes(&cgroup).unwrap().is_empty()
        });
        assert_eq!(shim.exit("c").signal, Some(9));
        // One that was created only goes the same way, and the name is free again.
        for _ in 0..2 {
            fs::remove_dir_all(shim.bundle("c")).unwrap();
            shim.create("c", "true", Recipe::default());
            shim.delete("c");
        }
    });
}

#[test]
fn failed_creations_and_starts_say_why_and_leave_nothing() {
    with_each_runtime("broken", |shim| {
        let what = shim.prepare("c", "true", Recipe::default());
        let config = what.bundle.join("config.json");
        let text = fs::read_to_string(&config).unwrap();

        fs::write(&config, text.replace("\"/bin/sh\"", "\"/bin/nothing\"")).unwrap();
        let create = Call::Create(Box::new(what.clone()));
        // runc looks for the program when it creates, the others when they start.
        let refused = match shim.call(create.clone()) {
            Ok(_) => {
                let refused = shim.refused(Call::Start { id: "c".into() });
                shim.exit("c");
                shim.delete("c");
                refused
            }
            Err(error) => crate::fixture::failure(Err::<(), _>(error)),
        };
        assert_failure(&refused, FailureKind::Runtime, "/bin/nothing");
        assert_eq!(shim.container("c"), None);

        fs::write(&config, text.replace("\"rootfs\"", "\"missing\"")).unwrap();
        let refused = shim.refused(create.clone());
        assert_failure(&refused, FailureKind::Runtime, "missing");
        assert_eq!(shim.container("c"), None);

        fs::write(&config, "{").unwrap();
        let refused = shim.refused(create.clone());
        assert_failure(&refused, FailureKind::Invalid, "config.json");

        fs::write(&config, text).unwrap();
        if shim.is_embedded() {
            cgroups().create(&what.cgroup).unwrap();
        }
        shim.call(create.clone()).unwrap();
        let refused = shim.refused(create);
        assert_failure(&refused, FailureKind::AlreadyExists, "c already");
    });
}

#[test]
fn an_overlay_is_mounted_for_the_container_and_leaves_nothing_on_the_host() {
    with_each_runtime("overlay", |shim| {
        let recipe = Recipe {
            overlay: true,
            ..Recipe::default()
        };
        shim.run("c", "cat /below; echo new > /new", recipe);
        assert_eq!(shim.exit("c").exit_code, 0);
        assert_eq!(shim.lines("c"), ["below"]);
        let upper = shim.bundle("c").join("upper/new");
        assert_eq!(fs::read_to_string(upper).unwrap(), "new\n");
        shim.delete("c");
        let root = shim.bundle("c").join("rootfs");
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(root.to_str().unwrap()));
    });
}

#[test]
fn calls_in_the_wrong_state_are_refused() {
    with_each_runtime("wrong", |shim| {
        let start = |id: &str| Call::Start { id: id.into() };
        assert_failure(&shim.refused(start("c")), FailureKind::NotFound, "c");
        shim.run("c", "sleep 1000", Recipe::default());
        assert_failure(
            &shim.refused(start("c")),
            FailureKind::WrongState,
            "running",
        );
        let no_signal = Call::Signal {
            id: "c".into(),
            signal: 4711,
            target: SignalTarget::Init,
        };
        assert_failure(&shim.refused(no_signal), FailureKind::Invalid, "4711");
        let resize = Call::Resize {
            id: "c".into(),
            width: 1,
            height: 1,
        };
        assert_failure(
            &shim.refused(resize),
            FailureKind::WrongState,
            "no terminal",
        );
        let again = shim.refused(Call::MakeSandbox(Box::default()));
        assert_failure(&again, FailureKind::AlreadyExists, "sandbox");
    });
}

#[test]
fn nothing_is_made_before_the_sandbox() {
    let mut shim = Shim::start("early", RuntimeChoice::Embedded);
    let what = shim.prepare("c", "true", Recipe::default());
    let refused = shim.refused(Call::Create(Box::new(what)));
    assert_failure(&refused, FailureKind::WrongState, "sandbox");
}

#[test]
fn a_shutdown_kills_all_and_ends_the_shim() {
    with_each_runtime("shutdown", |shim| {
        shim.run("c", "sleep 1000", Recipe::default());
        shim.create("d", "true", Recipe::default());
        shim.call(Call::Shutdown).unwrap();
        assert!(ends_within(&shim.pidfd, PATIENCE));
        assert!(!shim.path().join("shim.sock").exists());
        for id in ["c", "d"] {
            let left = cgroups().processes(&shim.container_cgroup(id)).unwrap();
            assert!(left.is_empty(), "{left:?}");
        }
        assert!(exit_record::read(&shim.bundle("c")).unwrap().is_some());
    });
}

#[test]
fn containers_join_the_namespaces_of_their_pod() {
    use rubelet_oci::NamespaceKind::{Ipc, Network, Pid, Uts};
    with_each_new_shim("join", |shim| {
        let kinds = vec![Network, Ipc, Uts, Pid];
        let setup = SandboxSetup {
            namespaces: kinds.clone(),
            hostname: "in-the-pod".into(),
            ..SandboxSetup::default()
        };
        shim.call(Call::MakeSandbox(Box::new(setup))).unwrap();
        let sandbox = shim.state().sandbox.unwrap();
        let path = |kind| sandbox.namespace(kind).unwrap().clone();
        let recipe = || Recipe {
            joins: kinds.iter().map(|kind| (*kind, path(*kind))).collect(),
            ..Recipe::default()
        };
        let script = "hostname; echo pid $$; sleep 1000";
        let first = shim.run("c", script, recipe());
        let second = shim.run("d", "sleep 1000 & sleep 1000", recipe());
        shim.wait_for_line("c", "in-the-pod");
        let lines = shim.lines("c");
        assert!(
            lines.contains(&"pid 2".to_owned()) || !lines.contains(&"pid 1".to_owned()),
            "{lines:?}"
        );
        for (kind, name) in [(Network, "net"), (Ipc, "ipc"), (Uts, "uts"), (Pid, "pid")] {
            let of = |pid: i32| fs::read_link(format!("/proc/{pid}/ns/{name}")).unwrap();
            assert_eq!(of(first), of(second), "{name}");
            assert_ne!(of(first), of(shim.pid), "{name}");
            use std::os::unix::fs::MetadataExt as _;
            let inode = fs::metadata(path(kind)).unwrap().ino();
            assert!(
                of(first).to_string_lossy().contains(&inode.to_string()),
                "{name}"
            );
        }
        // In a shared namespace an init doesn't take the rest with it: the shim does.
        shim.signal("d", libc::SIGKILL, SignalTarget::Init);
        assert_eq!(shim.exit("d").signal, Some(9));
        let cgroup = shim.container_cgroup("d");
        wait_until("the end of the rest", || {
            cgroups().processes(&cgroup).unwrap().is_empty()
        });
        assert_eq!(shim.container("c").unwrap().phase, ContainerPhase::Running);
    });
}

#[test]
fn a_container_that_needs_too_much_memory_says_so() {
    with_each_runtime("oom", |shim| {
        let what = shim.prepare(
            "c",
            "x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo no",
            Recipe::default(),
        );
        let memory = rubelet_oci::Memory {
            limit: Some(16 << 20),
            ..rubelet_oci::Memory::default()
        };
        let resources = rubelet_oci::LinuxResources {
            memory: Some(memory),
            ..rubelet_oci::LinuxResources::default()
        };
        if shim.is_embedded() {
            cgroups().apply(&what.cgroup, &resources).unwrap();
        } else {
            let config = what.bundle.join("config.json");
            let text = fs::read(&config).unwrap();
            let mut spec: rubelet_oci::Spec = serde_json::from_slice(&text).unwrap();
            spec.linux.resources = Some(resources);
            fs::write(&config, serde_json::to_vec(&spec).unwrap()).unwrap();
        }
        shim.call(Call::Create(Box::new(what))).unwrap();
        shim.call(Call::Start { id: "c".into() }).unwrap();
        let exit = shim.exit("c");
        assert!(exit.oom_killed, "{exit:?}");
        assert_eq!(exit.signal, Some(9));
    });
}
