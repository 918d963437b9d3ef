//! The JSON form, as other runtimes read and write it.

use serde_json::json;

use super::*;
use crate::{Action, Architecture, DeviceKind, NamespaceKind};

#[test]
fn a_configuration_of_runc_is_read() {
    let spec: Spec = serde_json::from_value(json!({
        "ociVersion": "1.2.0",
        "process": {
            "terminal": true, "user": {"uid": 1, "gid": 2, "additionalGids": [3]},
            "args": ["sh"], "env": null, "cwd": "/",
            "capabilities": {"bounding": ["CAP_KILL"], "ambient": null},
            "rlimits": [{"type": "RLIMIT_NOFILE", "hard": 1024, "soft": 512}],
            "noNewPrivileges": true, "oomScoreAdj": -500, "scheduler": {"policy": "SCHED_OTHER"}
        },
        "root": {"path": "rootfs", "readonly": true},
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/data", "source": "/srv", "options": ["rbind", "rro"],
             "uidMappings": [{"containerID": 0, "hostID": 65536, "size": 10}]}
        ],
        "linux": {
            "namespaces": [{"type": "pid"}, {"type": "network", "path": "/run/netns/x"}],
            "resources": {"devices": [{"allow": false, "access": "rwm"}], "pids": {"limit": -1}},
            "seccomp": {"defaultAction": "SCMP_ACT_ERRNO", "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_MIPS"],
                        "syscalls": [{"names": ["read"], "action": "SCMP_ACT_ALLOW", "args": null}]},
            "devices": [{"path": "/dev/x", "type": "u", "major": 1, "minor": 3}],
            "timeOffsets": {}
        }
    }))
    .unwrap();
    assert_eq!(spec.process.user.additional_gids, [3]);
    assert_eq!(spec.process.oom_score_adj, Some(-500));
    assert!(!spec.mounts[0].is_bind() && spec.mounts[1].is_bind());
    assert_eq!(spec.mounts[1].uid_mappings[0].host_id, 65536);
    let pid = spec.linux.namespace(NamespaceKind::Pid).unwrap();
    assert_eq!(pid.path, None);
    let resources = spec.linux.resources.as_ref().unwrap();
    assert_eq!(resources.devices[0].kind, DeviceKind::All);
    let seccomp = spec.linux.seccomp.as_ref().unwrap();
    assert_eq!(seccomp.syscalls[0].action, Action::Allow);
    assert_eq!(
        seccomp.architectures,
        [Architecture::X86_64, Architecture::Other]
    );
    let again: Spec = serde_json::from_str(&serde_json::to_string(&spec).unwrap()).unwrap();
    assert_eq!(again.process, spec.process);
    assert_eq!(again.linux.namespaces, spec.linux.namespaces);
    assert_eq!(again.mounts, spec.mounts);
}

#[test]
fn names_are_those_of_the_specification() {
    let spec = Spec {
        oci_version: crate::VERSION.into(),
        mounts: vec![Mount {
            destination: "/proc".into(),
            kind: "proc".into(),
            source: "proc".into(),
            ..Mount::default()
        }],
        ..Spec::default()
    };
    let value = serde_json::to_value(&spec).unwrap();
    assert_eq!(value["ociVersion"], crate::VERSION);
    assert_eq!(
        value["mounts"],
        json!([{"destination": "/proc", "type": "proc", "source": "proc"}])
    );
    assert_eq!(value["linux"], json!({}));
    assert_eq!(value["process"]["cwd"], "");
}
