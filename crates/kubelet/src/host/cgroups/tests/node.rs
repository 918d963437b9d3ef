//! Limits of the node's cgroups: values, and what is missing.

use rubelet_cgroup_plan::cpu;
use rubelet_node_plan::node_allocatable::{CgroupEnforcement, ReservedFor};

use super::*;

/// The outcomes of a round, that of all pods first.
fn results(found: &[CgroupEnforcement]) -> Vec<Result<(), &str>> {
    let found = found.iter();
    found
        .map(|one| {
            one.result
                .as_ref()
                .copied()
                .map_err(|error| error.0.as_str())
        })
        .collect()
}

fn reserved(name: &str, compressible: bool) -> ReservedCgroup {
    let all = CgroupValues {
        cpu: Some(cpu::share(500)),
        memory_limit: Some(64 << 20),
        pids_limit: Some(50),
        ..CgroupValues::default()
    };
    let only_cpu = CgroupValues {
        cpu: all.cpu,
        ..CgroupValues::default()
    };
    ReservedCgroup {
        owner: ReservedFor::Kube,
        compressible,
        name: name.to_owned(),
        values: if compressible { only_cpu } else { all },
    }
}

#[test]
fn all_pods_are_limited_before_there_is_one_and_again_after_a_change() {
    for (driver, dir, tier) in [
        (SYSTEMD, "kubepods.slice", "kubepods-besteffort.slice"),
        (CGROUPFS, "kubepods", "besteffort"),
    ] {
        let node = Fixture::new();
        for path in ["kubepods/burstable", "kubepods/besteffort"] {
            make(node.root.path(), path);
        }
        assert_eq!(results(&node.cgroups.enforce(driver)), [Ok(())]);
        let calls: &[&str] = match driver {
            SYSTEMD => &[
                "start kubepods.slice weight=79 memory=1024Mi",
                "start kubepods-burstable.slice weight=1",
                "start kubepods-besteffort.slice weight=1",
            ],
            _ => &[],
        };
        assert_eq!(node.systemd.calls(), calls);
        for (file, value) in [
            (format!("{dir}/memory.max"), "1073741824"),
            (format!("{dir}/cpu.weight"), "79"),
            (format!("{dir}/{tier}/cpu.weight"), "1"),
        ] {
            assert_eq!(node.file(&file), value);
            fs::write(node.root.path().join(&file), "5").unwrap();
            assert_eq!(results(&node.cgroups.enforce(driver)), [Ok(())]);
            assert_eq!(node.file(&file), value, "{file} is set again");
        }
        assert_eq!(node.systemd.calls(), [""; 0], "systemd has these values");
    }
}

#[test]
fn reserved_cgroups_are_limited_where_they_are() {
    for (driver, name, path) in [
        (SYSTEMD, "system", "system.slice"),
        (SYSTEMD, "/a.slice/a-b.slice", "a.slice/a-b.slice"),
        (CGROUPFS, "/runtime/kube", "runtime/kube"),
    ] {
        let node = Fixture::reserving(vec![reserved(name, false), reserved(name, true)]);
        for path in ["kubepods/burstable", "kubepods/besteffort", path] {
            make(node.root.path(), path);
        }
        assert_eq!(
            results(&node.cgroups.enforce(driver)),
            [Ok(()); 3],
            "{name}"
        );
        for (file, value) in [
            ("memory.max", "67108864"),
            ("cpu.weight", "20"),
            ("pids.max", "50"),
        ] {
            assert_eq!(node.file(&format!("{path}/{file}")), value);
        }
        let unit = path.rsplit('/').next().unwrap();
        let start = format!("start {unit} weight=20 memory=64Mi pids=50");
        let started = node.systemd.calls().contains(&start);
        assert_eq!(started, driver == SYSTEMD, "a reload of systemd keeps them");
    }
}

#[test]
fn a_reserved_cgroup_that_is_missing_is_not_created() {
    for (driver, missing) in [(SYSTEMD, "kube.slice"), (CGROUPFS, "kube")] {
        let node = Fixture::reserving(vec![reserved("/kube", true)]);
        for path in ["kubepods/burstable", "kubepods/besteffort"] {
            make(node.root.path(), path);
        }
        let found = node.cgroups.enforce(driver);
        let dir = node.root.path().join(missing);
        let expected = format!(
            "there is no cgroup /{missing}: {} must exist before the agent starts",
            dir.display()
        );
        assert_eq!(results(&found), [Ok(()), Err(expected.as_str())]);
        let calls = node.systemd.calls();
        assert!(
            !calls.iter().any(|call| call.contains("kube.slice")),
            "{calls:?}"
        );
        assert!(!dir.exists());
    }
}

#[test]
fn without_systemd_all_pods_are_not_limited_and_the_error_says_it() {
    let node = Fixture::new();
    node.systemd.set_away(true);
    let expected = "cannot reach systemd through /run/dbus/system_bus_socket: connection refused";
    assert_eq!(results(&node.cgroups.enforce(SYSTEMD)), [Err(expected)]);
    node.systemd.set_away(false);
    assert_eq!(results(&node.cgroups.enforce(SYSTEMD)), [Ok(())]);
}
