//! Fake trees for both versions, and real cgroups where the test runs as root.

use std::process::{Command, Stdio};

use rubelet_cgroup_plan::{CgroupValues, CpuQuota, CpuShare, HugepageLimit};

use super::*;
use crate::mountinfo;

pub(super) fn path(text: &str) -> CgroupPath {
    CgroupPath::parse(text).unwrap()
}

pub(super) fn temp() -> tempfile::TempDir {
    tempfile::Builder::new()
        .prefix("rbt-host-")
        .tempdir()
        .unwrap()
}

pub(super) fn put(root: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let file = root.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
}

pub(super) fn get(root: &Path, file: &str) -> String {
    fs::read_to_string(root.join(file)).unwrap()
}

pub(super) fn v1(root: &Path, mounts: &[(&str, &str)]) -> CgroupFs {
    let line = |(dir, kind): &(&str, &str)| {
        let fs_type = if *kind == "cgroup2" {
            "cgroup2"
        } else {
            "cgroup"
        };
        format!(
            "1 1 0:1 / {}/{dir} rw - {fs_type} cgroup rw,{kind}\n",
            root.display()
        )
    };
    let text: String = mounts.iter().map(line).collect();
    CgroupFs::from_mounts(root, false, &mountinfo::parse(text.as_bytes()).unwrap()).unwrap()
}

pub(super) fn v2(root: &Path) -> CgroupFs {
    CgroupFs::from_mounts(root, true, &[]).unwrap()
}

fn values() -> CgroupValues {
    CgroupValues {
        cpu: Some(CpuShare {
            shares: 512,
            weight: 20,
        }),
        cpu_quota: Some(CpuQuota {
            quota_us: Some(50_000),
            period_us: 100_000,
        }),
        memory_limit: Some(1 << 20),
        memory_min: None,
        memory_low: None,
        pids_limit: Some(100),
        hugepages: vec![HugepageLimit {
            page_size: 2 << 20,
            limit: 0,
        }],
    }
}

#[test]
fn layouts_are_distinguished() {
    let root = temp();
    assert_eq!(v2(root.path()).layout(), CgroupLayout::V2);
    assert_eq!(
        v1(root.path(), &[("cpu", "cpu")]).layout(),
        CgroupLayout::V1
    );
    let hybrid = v1(root.path(), &[("cpu", "cpu"), ("unified", "cgroup2")]);
    assert_eq!(hybrid.layout(), CgroupLayout::Hybrid);

    let only_v2_beside = format!(
        "1 1 0:1 / {}/unified rw - cgroup2 x rw\n",
        root.path().display()
    );
    for text in [
        "1 1 0:1 / /elsewhere/cpu rw - cgroup x rw,cpu\n",
        &only_v2_beside,
    ] {
        let mounts = mountinfo::parse(text.as_bytes()).unwrap();
        let error = CgroupFs::from_mounts(root.path(), false, &mounts).unwrap_err();
        assert!(error.to_string().contains("mount cgroup2 there"), "{error}");
    }
}

#[test]
fn controllers_mounted_together_or_twice_are_one_hierarchy() {
    let root = temp();
    let fs = v1(
        root.path(),
        &[
            ("longer/path", "cpu,cpuacct"),
            ("cpu", "cpu,cpuacct"),
            ("systemd", "xattr,name=systemd"),
        ],
    );
    let dir = |controller| fs.controller_dir(controller, &path("/a"));
    assert_eq!(dir("cpu"), Some(root.path().join("cpu/a")));
    assert_eq!(dir("cpuacct"), dir("cpu"));
    assert_eq!(dir("name=systemd"), Some(root.path().join("systemd/a")));
    assert_eq!(dir("memory"), None);
}

#[test]
fn memory_is_protected_with_version_2_only() {
    let protected = CgroupValues {
        memory_min: Some(4096),
        memory_low: Some(8192),
        ..CgroupValues::default()
    };
    let root = temp();
    put(root.path(), &[("a/memory.min", "0"), ("a/memory.low", "0")]);
    v2(root.path()).write(&path("/a"), &protected).unwrap();
    assert_eq!(get(root.path(), "a/memory.min"), "4096");
    assert_eq!(get(root.path(), "a/memory.low"), "8192");
    let root = temp();
    put(root.path(), &[("memory/a/tasks", "")]);
    let fs = v1(root.path(), &[("memory", "memory")]);
    fs.write(&path("/a"), &protected).unwrap();
}

#[test]
fn a_missing_directory_is_named_if_a_controller_needs_it() {
    let root = temp();
    put(
        root.path(),
        &[("cpu/system/tasks", ""), ("memory/tasks", "")],
    );
    let mounted = v1(root.path(), &[("cpu", "cpu"), ("memory", "memory")]);
    let missing = |name: &str, controllers: &[&str]| mounted.missing(&path(name), controllers);
    assert_eq!(missing("/system", &["cpu"]), None);
    assert_eq!(
        missing("/system", &["cpu", "memory"]),
        Some(root.path().join("memory/system"))
    );
    // One that is not mounted needs no directory.
    assert_eq!(missing("/system", &["pids"]), None);
    assert_eq!(missing("/system", &[]), None);
    assert!(missing("/other", &[]).is_some());
    assert!(mounted.has_controller("memory") && !mounted.has_controller("pids"));

    let root = temp();
    put(
        root.path(),
        &[
            ("cgroup.controllers", "cpu memory pids\n"),
            ("system/cgroup.procs", ""),
        ],
    );
    let mounted = v2(root.path());
    assert_eq!(mounted.missing(&path("/system"), &["cpu", "memory"]), None);
    assert_eq!(
        mounted.missing(&path("/other"), &["cpu"]),
        Some(root.path().join("other"))
    );
    assert!(mounted.has_controller("pids") && !mounted.has_controller("hugetlb"));
}

#[test]
fn version_1_makes_directories_everywhere_and_fills_cpusets() {
    let root = temp();
    put(
        root.path(),
        &[
            ("cpuset/cpuset.cpus", "0-3\n"),
            ("cpuset/cpuset.mems", "0\n"),
            ("cpuset/kubepods/cpuset.cpus", "\n"),
            ("cpuset/kubepods/cpuset.mems", ""),
            ("cpuset/kubepods/burstable/cpuset.cpus", "1\n"),
            ("cpuset/kubepods/burstable/cpuset.mems", "\n"),
            ("memory/tasks", ""),
            ("unified/cgroup.procs", ""),
        ],
    );
    let fs = v1(
        root.path(),
        &[
            ("cpuset", "cpuset"),
            ("memory", "memory"),
            ("unified", "cgroup2"),
        ],
    );
    let tier = path("/kubepods/burstable");
    assert!(!fs.exists(&tier));
    for _ in 0..2 {
        fs.ensure(&tier).unwrap();
        assert!(fs.exists(&tier));
    }
    assert_eq!(get(root.path(), "cpuset/kubepods/cpuset.cpus"), "0-3");
    assert_eq!(get(root.path(), "cpuset/kubepods/cpuset.mems"), "0");
    assert_eq!(
        get(root.path(), "cpuset/kubepods/burstable/cpuset.cpus"),
        "1\n",
        "kept"
    );
    assert_eq!(
        get(root.path(), "cpuset/kubepods/burstable/cpuset.mems"),
        "0"
    );
    assert!(root.path().join("unified/kubepods/burstable").is_dir());
    assert_eq!(
        fs.children(&path("/kubepods")).unwrap(),
        BTreeSet::from(["burstable".into()])
    );
    assert!(fs.children(&path("/nothing")).unwrap().is_empty());
}

#[test]
fn version_2_hands_controllers_down_from_the_top() {
    let root = temp();
    let all = "cpuset cpu io memory hugetlb pids rdma misc\n";
    put(
        root.path(),
        &[
            ("cgroup.controllers", all),
            ("cgroup.subtree_control", "memory pids\n"),
            ("kubepods/cgroup.controllers", "cpu memory\n"),
            ("kubepods/cgroup.subtree_control", ""),
        ],
    );
    let fs = v2(root.path());
    fs.ensure(&path("/kubepods/burstable")).unwrap();
    assert_eq!(
        get(root.path(), "cgroup.subtree_control"),
        "+cpu +cpuset +io +hugetlb"
    );
    assert_eq!(
        get(root.path(), "kubepods/cgroup.subtree_control"),
        "+cpu +memory"
    );
    assert!(root.path().join("kubepods/burstable").is_dir());
}

#[test]
fn a_missing_kernel_file_is_named() {
    let root = temp();
    let error = v2(root.path()).ensure(&path("/kubepods")).unwrap_err();
    assert!(
        error.to_string().ends_with("/cgroup.controllers"),
        "{error}"
    );
}

#[test]
fn values_go_to_the_files_of_each_version() {
    let root = temp();
    let names_v1 = [
        ("cpu/a/cpu.shares", "512"),
        ("cpu/a/cpu.cfs_period_us", "100000"),
        ("cpu/a/cpu.cfs_quota_us", "50000"),
        ("memory/a/memory.limit_in_bytes", "1048576"),
        ("pids/a/pids.max", "100"),
        ("hugetlb/a/hugetlb.2MB.limit_in_bytes", "0"),
    ];
    put(
        root.path(),
        &names_v1.map(|(name, _)| (name, "something that is longer")),
    );
    let controllers = ["cpu", "memory", "pids", "hugetlb"].map(|name| (name, name));
    v1(root.path(), &controllers)
        .write(&path("/a"), &values())
        .unwrap();
    for (name, value) in names_v1 {
        assert_eq!(get(root.path(), name), value, "{name}");
    }

    let names_v2 = [
        ("a/cpu.weight", "20"),
        ("a/cpu.max", "50000 100000"),
        ("a/memory.max", "1048576"),
        ("a/pids.max", "100"),
        ("a/hugetlb.2MB.max", "0"),
        ("a/hugetlb.2MB.rsvd.max", "0"),
    ];
    put(root.path(), &names_v2.map(|(name, _)| (name, "max")));
    v2(root.path()).write(&path("/a"), &values()).unwrap();
    for (name, value) in names_v2 {
        assert_eq!(get(root.path(), name), value, "{name}");
    }
    let lifted = CgroupValues {
        cpu_quota: Some(CpuQuota {
            quota_us: None,
            period_us: 100_000,
        }),
        ..CgroupValues::default()
    };
    v2(root.path()).write(&path("/a"), &lifted).unwrap();
    assert_eq!(get(root.path(), "a/cpu.max"), "max 100000");
    v1(root.path(), &controllers)
        .write(&path("/a"), &lifted)
        .unwrap();
    assert_eq!(get(root.path(), "cpu/a/cpu.cfs_quota_us"), "-1");
    assert_eq!(
        get(root.path(), "cpu/a/cpu.shares"),
        "512",
        "not asked for, so left alone"
    );
}

#[test]
fn what_is_refused_is_named_and_the_rest_is_written() {
    let root = temp();
    put(
        root.path(),
        &[("cpu/a/cpu.shares", ""), ("pids/a/pids.max", "")],
    );
    let fs = v1(
        root.path(),
        &[("cpu", "cpu"), ("pids", "pids"), ("memory", "memory")],
    );
    let error = fs.write(&path("/a"), &values()).unwrap_err();
    let text = error.to_string();
    for part in [
        "cpu.cfs_period_us",
        "cpu.cfs_quota_us",
        "memory.limit_in_bytes",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert!(
        text.contains("the cgroup controller `memory` is missing"),
        "{text}"
    );
    assert!(!text.contains("hugetlb"), "no pages were asked for: {text}");
    assert_eq!(get(root.path(), "pids/a/pids.max"), "100");

    let pages = |limit| CgroupValues {
        hugepages: vec![HugepageLimit {
            page_size: 2 << 20,
            limit,
        }],
        ..CgroupValues::default()
    };
    assert!(
        fs.write(&path("/a"), &pages(HugepageLimit::UNBOUNDED))
            .is_ok()
    );
    let text = fs
        .write(&path("/a"), &pages(4 << 20))
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("`4194304` to hugetlb.2MB.limit_in_bytes"),
        "{text}"
    );
}

/// The machine's cgroups and a path of this test in them; `None` where it can't run and was told to be
/// skipped.
#[track_caller]
pub(super) fn real(test: &str) -> Option<(CgroupFs, CgroupPath)> {
    if !rubelet_needs::root() {
        return None;
    }
    let found = CgroupFs::detect(Path::new("/sys/fs/cgroup")).map_err(|error| error.to_string());
    let made = found.and_then(|fs| {
        let top = path(&format!("/rbt-host-{}-{test}", std::process::id()));
        let made = fs.ensure(&top).map_err(|error| error.to_string());
        made.map(|()| (fs, top))
    });
    match made {
        Ok(made) => Some(made),
        Err(error) => {
            rubelet_needs::missing(format_args!("cgroups: {error}"));
            None
        }
    }
}

#[test]
fn real_cgroups_are_made_written_listed_and_removed() {
    let Some((fs, top)) = real("values") else {
        return;
    };
    let pod = top.join("pod1").unwrap();
    fs.ensure(&pod).unwrap();
    let values = CgroupValues {
        memory_limit: Some(64 << 20),
        hugepages: vec![HugepageLimit {
            page_size: 2 << 20,
            limit: HugepageLimit::UNBOUNDED,
        }],
        ..values()
    };
    for quota in [50_000, 20_000] {
        let cpu_quota = Some(CpuQuota {
            quota_us: Some(quota),
            period_us: 100_000,
        });
        fs.write(
            &pod,
            &CgroupValues {
                cpu_quota,
                ..values.clone()
            },
        )
        .unwrap();
    }
    assert_eq!(fs.children(&top).unwrap(), BTreeSet::from(["pod1".into()]));
    assert!(fs.exists(&pod));
    for _ in 0..2 {
        assert_eq!(fs.remove(&top).unwrap(), CgroupRemoval::Gone);
        assert!(!fs.exists(&pod) && !fs.exists(&top));
    }
}

#[test]
fn a_cgroup_with_a_process_stays_until_the_process_is_gone() {
    let Some((fs, top)) = real("busy") else {
        return;
    };
    let pod = top.join("pod1").unwrap();
    fs.ensure(&pod).unwrap();
    let procs = fs
        .controller_dir("pids", &pod)
        .unwrap()
        .join("cgroup.procs");
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    fs::write(procs, child.id().to_string()).unwrap();
    assert!(matches!(
        fs.remove(&top).unwrap(),
        CgroupRemoval::StillBusy { .. }
    ));
    drop(child.stdin.take());
    child.wait().unwrap();
    // The kernel may need a moment after the process was reaped.
    let gone = (0..1_000_000).any(|_| {
        std::thread::yield_now();
        fs.remove(&top).unwrap() == CgroupRemoval::Gone
    });
    assert!(gone);
}

#[test]
fn a_kill_hits_every_process_of_the_cgroup_and_of_those_within_and_no_other() {
    let root = temp();
    let mut children: Vec<_> = (0..3)
        .map(|_| Command::new("sleep").arg("600").spawn().unwrap())
        .collect();
    let pids: Vec<String> = children
        .iter()
        .map(|child| child.id().to_string())
        .collect();
    let within = format!("{}\n0\n", pids[1]);
    put(
        root.path(),
        &[
            ("cpu/pod/c/cgroup.procs", pids[0].as_str()),
            ("cpu/pod/c/nested/cgroup.procs", &within),
            ("cpu/pod/d/cgroup.procs", &pids[2]),
        ],
    );
    let cgroups = v1(root.path(), &[("cpu", "cpu")]);
    assert_eq!(cgroups.kill(&path("/pod/c")).unwrap(), 2);
    assert_eq!(cgroups.kill(&path("/pod/e")).unwrap(), 0);
    for child in &mut children[..2] {
        let status = child.wait().unwrap();
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&status),
            Some(9)
        );
    }
    assert_eq!(children[2].try_wait().unwrap(), None);
    children[2].kill().unwrap();
    children[2].wait().unwrap();
}

/// Removes a cgroup of a test; the kernel may need a moment after the last process.
pub(super) fn remove(cgroups: &CgroupFs, path: &CgroupPath) {
    let gone = (0..1_000_000).any(|_| {
        std::thread::yield_now();
        cgroups.remove(path).unwrap() == CgroupRemoval::Gone
    });
    assert!(gone, "{path} stayed");
}

#[test]
fn frozen_processes_stand_still_and_are_killed_all_the_same() {
    let Some((cgroups, top)) = real("frozen") else {
        return;
    };
    let container = top.join("c").unwrap();
    let target = cgroups.create(&container).unwrap();
    assert_eq!(target.dir().is_some(), cgroups.layout() != CgroupLayout::V1);
    let mut child = Command::new("sleep").arg("600").spawn().unwrap();
    target.add(child.id().cast_signed()).unwrap();
    let patience = std::time::Duration::from_secs(60);
    cgroups.freeze(&container, patience).unwrap();
    assert!(cgroups.is_frozen(&container).unwrap());
    cgroups.thaw(&container).unwrap();
    assert!(!cgroups.is_frozen(&container).unwrap());
    cgroups.freeze(&container, patience).unwrap();
    let expected = BTreeSet::from([child.id().cast_signed()]);
    assert_eq!(cgroups.processes(&top).unwrap(), expected);
    assert_eq!(cgroups.kill(&container).unwrap(), 1);
    let status = child.wait().unwrap();
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&status),
        Some(9)
    );
    remove(&cgroups, &top);
    assert_eq!(cgroups.kill(&container).unwrap(), 0);
}

#[test]
fn a_process_that_forks_all_the_time_does_not_escape() {
    let Some((cgroups, top)) = real("forks") else {
        return;
    };
    let limits = rubelet_oci::LinuxResources {
        pids: Some(rubelet_oci::Pids { limit: 20 }),
        ..rubelet_oci::LinuxResources::default()
    };
    let target = cgroups.create(&top).unwrap();
    cgroups.apply(&top, &limits).unwrap();
    // A shell that can't fork exits, so they stay below the limit.
    let script = "read go; f() { while :; do /bin/true; done; }; f & f & f & wait";
    let mut child = Command::new("sh")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    target.add(child.id().cast_signed()).unwrap();
    drop(child.stdin.take());
    while cgroups.processes(&top).unwrap().len() < 3 {
        std::thread::yield_now();
    }
    assert!(cgroups.kill(&top).unwrap() >= 3);
    child.wait().unwrap();
    remove(&cgroups, &top);
}

#[test]
fn what_the_kernel_kills_for_memory_is_counted() {
    let Some((cgroups, top)) = real("oom") else {
        return;
    };
    let target = cgroups.create(&top).unwrap();
    let limits = rubelet_oci::LinuxResources {
        memory: Some(rubelet_oci::Memory {
            limit: Some(16 << 20),
            swap: Some(16 << 20),
            ..rubelet_oci::Memory::default()
        }),
        ..rubelet_oci::LinuxResources::default()
    };
    cgroups.apply(&top, &limits).unwrap();
    // Holds the whole of an endless line in memory.
    let mut child = Command::new("sh")
        .args(["-c", "read go; exec tail -n 1 /dev/zero"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    target.add(child.id().cast_signed()).unwrap();
    drop(child.stdin.take());
    let status = child.wait().unwrap();
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&status),
        Some(9)
    );
    assert_eq!(cgroups.oom_kills(&top).unwrap(), 1);
    remove(&cgroups, &top);
}
