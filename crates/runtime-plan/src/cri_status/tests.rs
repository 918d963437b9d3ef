//! Statuses and lists as kubelets and crictl read them.

use super::*;
use crate::{
    record::{ExitRecord, UserRecord},
    state::{ContainerPhase, SandboxPhase},
};

fn sandbox() -> SandboxRecord {
    SandboxRecord {
        id: "abc123".into(),
        boot_id: "boot".into(),
        name: "web".into(),
        namespace: "default".into(),
        uid: "u1".into(),
        attempt: 2,
        phase: SandboxPhase::Ready,
        created_at: 5,
        labels: [("app".to_owned(), "web".to_owned())].into(),
        annotations: StringMap::new(),
        runtime_handler: String::new(),
        log_directory: "/var/log/pods/web".into(),
        cgroup_parent: "/pods/u1".into(),
        shim_cgroup: "/shims/abc123".into(),
        shim_pid: 9,
        namespaces: NamespaceModes {
            pid: v1::NamespaceMode::Container.into(),
            ..NamespaceModes::default()
        },
        ips: vec!["10.88.0.2".into(), "fd00::2".into()],
        ports: Vec::new(),
        network_held: true,
    }
}

fn container(phase: ContainerPhase) -> ContainerRecord {
    ContainerRecord {
        id: "def456".into(),
        sandbox_id: "abc123".into(),
        boot_id: "boot".into(),
        name: "app".into(),
        attempt: 1,
        phase,
        created_at: 6,
        started_at: 7,
        exit: None,
        pid: 42,
        image: "busybox".into(),
        user_specified_image: "busybox:1".into(),
        image_ref: "docker.io/library/busybox@sha256:1".into(),
        image_id: "sha256:2".into(),
        labels: [("app".to_owned(), "web".to_owned())].into(),
        annotations: StringMap::new(),
        mounts: vec![MountRecord {
            container_path: "/data".into(),
            host_path: "/srv".into(),
            readonly: true,
            ..MountRecord::default()
        }],
        log_path: "/var/log/pods/web/app/1.log".into(),
        tty: false,
        stdin: false,
        stdin_once: false,
        resources: Default::default(),
        oom_score_adj: -5,
        user: UserRecord {
            uid: 1,
            gid: 2,
            groups: vec![2, 3],
        },
        stop_signal: 3,
        cgroup: "/pods/u1/def456".into(),
        scope: String::new(),
    }
}

#[test]
fn a_sandbox_tells_its_addresses_and_namespaces() {
    let status = sandbox_status(&sandbox()).unwrap();
    assert_eq!(status.state(), v1::PodSandboxState::SandboxReady);
    let network = status.network.unwrap();
    assert_eq!(network.ip, "10.88.0.2");
    assert_eq!(network.additional_ips[0].ip, "fd00::2");
    let namespaces = status.linux.unwrap().namespaces.unwrap().options.unwrap();
    assert_eq!(namespaces.pid(), v1::NamespaceMode::Container);
    assert_eq!(status.metadata.unwrap().attempt, 2);
}

#[test]
fn a_container_tells_how_it_ended() {
    let mut record = container(ContainerPhase::Running);
    let running = container_status(&record).unwrap();
    assert_eq!(running.state(), v1::ContainerState::ContainerRunning);
    assert_eq!((running.started_at, running.finished_at), (7, 0));
    assert_eq!(running.stop_signal(), v1::Signal::Sigquit);
    let user = running.user.unwrap().linux.unwrap();
    assert_eq!(
        (user.uid, user.gid, user.supplemental_groups),
        (1, 2, vec![2, 3])
    );
    let limits = running.resources.unwrap().linux.unwrap();
    assert_eq!(limits.oom_score_adj, -5);
    for (exit, reason, code) in [
        (ExitRecord::seen(0, 0, 9, false), "Completed", 0),
        (ExitRecord::seen(1, 0, 9, false), "Error", 1),
        (ExitRecord::seen(137, 9, 9, true), "OOMKilled", 137),
        (ExitRecord::unknown(9, "gone"), "Unknown", 255),
        (
            ExitRecord::start_failed(9, "no such file"),
            "StartError",
            128,
        ),
    ] {
        record.phase = ContainerPhase::Exited;
        record.exit = Some(exit);
        let status = container_status(&record).unwrap();
        assert_eq!(status.state(), v1::ContainerState::ContainerExited);
        assert_eq!((&*status.reason, status.exit_code), (reason, code));
        assert_eq!(status.finished_at, 9);
    }
}

#[test]
fn what_is_being_made_is_not_shown() {
    let half = SandboxRecord {
        phase: SandboxPhase::Creating,
        ..sandbox()
    };
    assert!(sandbox_status(&half).is_none() && sandbox_item(&half).is_none());
    assert!(!lists_sandbox(None, &half));
    let half = container(ContainerPhase::Creating);
    assert!(container_status(&half).is_none() && container_item(&half).is_none());
    assert!(!lists_container(None, &half));
}

#[test]
fn every_part_of_a_filter_must_fit() {
    let record = container(ContainerPhase::Running);
    let lists = |change: fn(&mut v1::ContainerFilter)| {
        let mut filter = v1::ContainerFilter::default();
        change(&mut filter);
        lists_container(Some(&filter), &record)
    };
    assert!(lists(|_| ()));
    assert!(lists(|filter| filter.id = "def".into()));
    assert!(!lists(|filter| filter.id = "abc".into()));
    assert!(lists(|filter| filter.pod_sandbox_id = "abc123".into()));
    assert!(!lists(|filter| filter.pod_sandbox_id = "abc1234".into()));
    let state = |state: v1::ContainerState| {
        Some(v1::ContainerStateValue {
            state: state.into(),
        })
    };
    for (wanted, fits) in [
        (v1::ContainerState::ContainerRunning, true),
        (v1::ContainerState::ContainerCreated, false),
    ] {
        let filter = v1::ContainerFilter {
            state: state(wanted),
            ..Default::default()
        };
        assert_eq!(lists_container(Some(&filter), &record), fits);
    }
    let label = |value: &str| v1::PodSandboxFilter {
        label_selector: [("app".to_owned(), value.to_owned())].into(),
        ..Default::default()
    };
    assert!(lists_sandbox(Some(&label("web")), &sandbox()));
    assert!(!lists_sandbox(Some(&label("db")), &sandbox()));
}

#[test]
fn identifiers_may_be_shortened_as_long_as_one_is_meant() {
    let ids = ["abc1", "abc2", "abc", "d"];
    assert_eq!(meant("abc", ids), Some("abc"));
    assert_eq!(meant("abc1", ids), Some("abc1"));
    assert_eq!(meant("ab", ids), None);
    assert_eq!(meant("d", ids), Some("d"));
    assert_eq!(meant("", ids), None);
    assert_eq!(meant("x", ids), None);
}

#[test]
fn records_survive_the_way_to_disk_and_back() {
    let record = ContainerRecord {
        exit: Some(ExitRecord::seen(1, 0, 9, false)),
        ..container(ContainerPhase::Exited)
    };
    let text = serde_json::to_string(&record).unwrap();
    assert_eq!(
        serde_json::from_str::<ContainerRecord>(&text).unwrap(),
        record
    );
    let text = serde_json::to_string(&sandbox()).unwrap();
    assert_eq!(
        serde_json::from_str::<SandboxRecord>(&text).unwrap(),
        sandbox()
    );
}
