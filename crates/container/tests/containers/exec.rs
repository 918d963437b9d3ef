//! Processes that join a running container.

use std::{fs, path::Path};

use rubelet_cgroup_plan::CgroupLayout;

use crate::{
    Case,
    fixture::{ContainerFixture, process, script},
};

pub(crate) const CASES: &[Case] = &[
    ("exec::joins_everything", joins_everything),
    ("exec::failures", failures),
    ("exec::into_a_dead_container", into_a_dead_container),
    ("exec::as_another_user", as_another_user),
    (
        "exec::into_cgroups_of_its_own",
        into_a_container_with_cgroups_of_its_own,
    ),
];

fn joins_everything() {
    let place = ContainerFixture::new();
    let spec = script("hostname inside; echo > /tmp/mark; echo; sleep 1000");
    let mut spec = spec;
    let names = spec.process.capabilities.as_mut().unwrap();
    for names in [
        &mut names.bounding,
        &mut names.effective,
        &mut names.permitted,
    ] {
        names.push("CAP_SYS_ADMIN".to_owned());
    }
    let running = place.start(&spec, Default::default());
    let namespaces = "for n in mnt net pid uts ipc cgroup; do readlink /proc/self/ns/$n; done; cat /proc/self/cgroup; ls /proc/self/fd";
    // Busybox runs a program by itself, and takes its name a moment later.
    let named = "until grep -q ^sleep /proc/1/comm; do :; done; cat /proc/1/comm";
    let process_ = process(&[
        "sh",
        "-c",
        &format!("ls /tmp; hostname; {named}; {namespaces}"),
    ]);
    let outcome = place.exec(&running, &spec, &process_).unwrap();
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(lines[..3], ["mark", "inside", "sleep"], "{outcome:?}");
    for (line, name) in lines[3..9]
        .iter()
        .zip(["mnt", "net", "pid", "uts", "ipc", "cgroup"])
    {
        let of_init = fs::read_link(format!("/proc/{}/ns/{name}", running.pid)).unwrap();
        assert_eq!(*line, of_init.to_str().unwrap(), "{name}");
    }
    let cgroups = lines
        .iter()
        .filter(|line| line.contains(':') && !line.contains('['));
    assert!(
        cgroups.into_iter().all(|line| line.ends_with(":/")),
        "{outcome:?}"
    );
    assert_eq!(
        lines[lines.len() - 4..],
        ["0", "1", "2", "3"],
        "{outcome:?}"
    );
    assert_eq!(outcome.code, Some(0));
    let mut process_ = process(&["sh", "-c", "echo err >&2; exit 9"]);
    process_.cwd = "/tmp".into();
    let outcome = place.exec(&running, &spec, &process_).unwrap();
    assert_eq!((outcome.stderr.as_str(), outcome.code), ("err\n", Some(9)));
    running.kill();
}

fn failures() {
    let place = ContainerFixture::new();
    let spec = script("echo; sleep 1000");
    let running = place.start(&spec, Default::default());
    let error = place
        .exec(&running, &spec, &process(&["nope"]))
        .unwrap_err();
    assert!(
        error.contains("exec: \"nope\": executable file not found in $PATH"),
        "{error}"
    );
    let mut away = process(&["true"]);
    away.cwd = "/nowhere".into();
    let error = place.exec(&running, &spec, &away).unwrap_err();
    assert!(
        error.contains(
            "chdir to cwd (\"/nowhere\") set in config.json failed: no such file or directory"
        ),
        "{error}"
    );
    running.kill();
}

fn into_a_dead_container() {
    let place = ContainerFixture::new();
    let spec = script("echo; sleep 1000");
    let running = place.start(&spec, Default::default());
    running.kill();
    let error = place
        .exec(&running, &spec, &process(&["true"]))
        .unwrap_err();
    assert!(
        error.contains("not running") || error.contains("no such process"),
        "{error}"
    );
    // The caller's own children are born where they were before.
    let own = |name| fs::read_link(format!("/proc/self/ns/{name}")).unwrap();
    assert_eq!(own("pid"), own("pid_for_children"));
}

fn as_another_user() {
    let place = ContainerFixture::new();
    let spec = script("echo; sleep 1000");
    let running = place.start(&spec, Default::default());
    let mut user = process(&[
        "sh",
        "-c",
        "id -u; id -G; grep CapEff /proc/self/status; echo x > /dev/stdout",
    ]);
    user.user.uid = 1000;
    user.user.gid = 1000;
    user.user.additional_gids = vec![5];
    user.no_new_privileges = true;
    let outcome = place.exec(&running, &spec, &user).unwrap();
    assert_eq!(
        outcome.stdout, "1000\n1000 5\nCapEff:\t0000000000000000\nx\n",
        "{outcome:?}"
    );
    running.kill();
}

/// On version 2 a cgroup that hands controllers down takes no processes itself.
fn into_a_container_with_cgroups_of_its_own() {
    let place = ContainerFixture::new();
    let second = place.cgroups.layout() == CgroupLayout::V2;
    if !rubelet_needs::applies(second, "these are cgroups of version 1") {
        return;
    }
    let spec = script("echo; sleep 1000");
    let running = place.start(&spec, Default::default());
    let dir = Path::new("/sys/fs/cgroup").join(place.cgroup.relative());
    let inner = dir.join("inner");
    fs::create_dir(&inner).unwrap();
    fs::write(inner.join("cgroup.procs"), running.pid.to_string()).unwrap();
    fs::write(dir.join("cgroup.subtree_control"), "+memory").unwrap();
    let show = process(&["cat", "/proc/self/cgroup"]);
    let outcome = place.exec(&running, &spec, &show).unwrap();
    assert_eq!(outcome.stdout, "0::/inner\n", "{outcome:?}");
    running.kill();
}
