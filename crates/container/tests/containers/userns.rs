//! Pods with a user namespace.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
};

use rubelet_container::{IdMappings, NamespaceOptions, PodNamespaces, make_namespaces};
use rubelet_oci::{IdMapping, LOWER_DIR, Namespace, NamespaceKind, SUB_PATH, Spec};

use crate::{
    Case,
    fixture::{ContainerFixture, bind, mount, process, script},
    pods::from_pod,
};

pub(crate) const CASES: &[Case] = &[
    (
        "userns::root_inside_is_nobody_outside",
        root_inside_is_nobody_outside,
    ),
    ("userns::volumes", volumes),
    ("userns::images", images),
    ("userns::exec_and_terminal", exec_and_terminal),
    ("userns::failures_are_told", failures_are_told),
    ("userns::shared_processes", shared_processes),
    (
        "userns::privileges_end_at_the_pod",
        privileges_end_at_the_pod,
    ),
];

const FIRST: u32 = 600_000;

fn ids() -> Vec<IdMapping> {
    vec![IdMapping {
        container_id: 0,
        host_id: FIRST,
        size: 65536,
    }]
}

fn pod(pid: bool) -> PodNamespaces {
    make_namespaces(&NamespaceOptions {
        net: true,
        ipc: true,
        uts: true,
        pid,
        user: Some(IdMappings {
            uids: ids(),
            gids: ids(),
        }),
        hostname: "pod".to_owned(),
        sysctls: [(
            "net.ipv4.ip_unprivileged_port_start".to_owned(),
            "0".to_owned(),
        )]
        .into(),
    })
    .unwrap()
}

fn in_pod(mut spec: Spec) -> Spec {
    spec.linux.namespaces.push(Namespace {
        kind: NamespaceKind::User,
        path: None,
    });
    from_pod(
        &mut spec,
        &[
            NamespaceKind::Network,
            NamespaceKind::Ipc,
            NamespaceKind::Uts,
            NamespaceKind::User,
        ],
    );
    spec.linux.uid_mappings = ids();
    spec.linux.gid_mappings = ids();
    spec
}

fn root_inside_is_nobody_outside() {
    let place = ContainerFixture::new();
    let pod = pod(false);
    // A directory that only root can enter: the layers' owner is root inside, too.
    fs::set_permissions(
        place.layer().join("root"),
        fs::Permissions::from_mode(0o700),
    )
    .unwrap();
    let spec = in_pod(script(
        "id -u; cat /proc/self/uid_map; stat -c '%u:%g %n' / /bin/busybox /root /dev/null /dev /dev/pts /dev/mqueue /proc/self; \
         echo x > /root/new; ls /root; echo y > /dev/null; hostname; echo out > /dev/stdout; \
         cat /proc/1/comm; mkdir /home/a/b/c -p; readlink /proc/self/ns/user",
    ));
    let outcome = place.run_in(&spec, pod.joined(), None).unwrap();
    let mut lines = outcome.stdout.lines();
    assert_eq!(lines.next(), Some("0"), "{outcome:?}");
    let map: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(map, ["0", "600000", "65536"]);
    for path in [
        "/",
        "/bin/busybox",
        "/root",
        "/dev/null",
        "/dev",
        "/dev/pts",
    ] {
        assert_eq!(lines.next().unwrap(), format!("0:0 {path}"), "{outcome:?}");
    }
    assert_eq!(lines.nth(2), Some("new"), "{outcome:?}");
    let rest: Vec<&str> = lines.collect();
    assert_eq!(rest[..3], ["pod", "out", "sh"], "{outcome:?}");
    assert_eq!(outcome.stderr, "", "{outcome:?}");
    let new = place.overlay.upper.as_ref().unwrap().join("root/new");
    let stat = fs::metadata(new).unwrap();
    assert_eq!((stat.uid(), stat.gid()), (FIRST, FIRST));
    // The layer itself is as it was.
    assert_eq!(fs::metadata(place.layer().join("root")).unwrap().uid(), 0);
}

fn volumes() {
    let place = ContainerFixture::new();
    let pod = pod(false);
    let data = place.directory("data");
    fs::write(data.join("file"), "x").unwrap();
    chown(data.join("file"), Some(1000), Some(1000)).unwrap();
    let mut spec = in_pod(script(
        "stat -c '%u:%g' /mapped/file /plain/file /other/file; echo new > /mapped/new; echo > /plain/new",
    ));
    spec.mounts
        .push(bind(&data, "/mapped", &["idmap", "rprivate"]));
    spec.mounts.push(bind(&data, "/plain", &["rprivate"]));
    let mut other = bind(&data, "/other", &["ridmap", "ro"]);
    let ids = vec![IdMapping {
        container_id: 1000,
        host_id: FIRST + 7,
        size: 1,
    }];
    other.uid_mappings = ids.clone();
    other.gid_mappings = ids;
    spec.mounts.push(other);
    let outcome = place.run_in(&spec, pod.joined(), None).unwrap();
    assert_eq!(
        outcome.stdout, "1000:1000\n65534:65534\n7:7\n",
        "{outcome:?}"
    );
    assert!(
        outcome.stderr.contains("/plain/new: Permission denied"),
        "{outcome:?}"
    );
    assert_eq!(fs::metadata(data.join("new")).unwrap().uid(), 0);
}

fn images() {
    let place = ContainerFixture::new();
    let pod = pod(false);
    let mut layers = Vec::new();
    for name in ["two", "one"] {
        let layer = place.directory(name);
        fs::create_dir(layer.join("etc")).unwrap();
        fs::write(layer.join("etc").join(name), "x").unwrap();
        chown(layer.join("etc").join(name), Some(0), Some(7)).unwrap();
        layers.push(format!("{LOWER_DIR}{}", layer.display()));
    }
    let part = format!("{SUB_PATH}etc");
    let mut spec = in_pod(script("stat -c '%u:%g' /all/etc/* /part/* /single/*"));
    for (to, options) in [
        ("/all", vec!["ro", &*layers[0], &layers[1]]),
        ("/part", vec!["ro", &*layers[0], &layers[1], &part]),
        ("/single", vec!["ro", &*layers[0], &part]),
    ] {
        spec.mounts.push(mount(to, "overlay", "tools:1", &options));
    }
    let outcome = place.run_in(&spec, pod.joined(), None).unwrap();
    assert_eq!(outcome.stdout, "0:7\n".repeat(5), "{outcome:?}");
}

fn exec_and_terminal() {
    let place = ContainerFixture::new();
    let pod = pod(false);
    let spec = in_pod(script("echo; sleep 1000"));
    let running = place.start(&spec, pod.joined());
    let mut user = process(&[
        "sh",
        "-c",
        "id -u; grep CapEff /proc/self/status; echo x > /dev/stderr",
    ]);
    user.user.uid = 1000;
    let outcome = place.exec(&running, &spec, &user).unwrap();
    assert_eq!(
        outcome.stdout, "1000\nCapEff:\t0000000000000000\n",
        "{outcome:?}"
    );
    assert_eq!(outcome.stderr, "x\n");
    let outcome = place
        .exec(&running, &spec, &process(&["id", "-u"]))
        .unwrap();
    assert_eq!(outcome.stdout, "0\n");
    let stat = fs::metadata(format!("/proc/{}", running.pid)).unwrap();
    assert_eq!(stat.uid(), FIRST);
    running.kill();
}

fn failures_are_told() {
    let place = ContainerFixture::new();
    let pod = pod(false);
    let mut spec = in_pod(script("true"));
    spec.process.args = vec!["nope".to_owned()];
    let error = place.run_in(&spec, pod.joined(), None).unwrap_err();
    assert!(
        error.contains("executable file not found in $PATH"),
        "{error}"
    );
    spec.mounts.push(bind("/no/such".as_ref(), "/data", &[]));
    let error = place.run_in(&spec, pod.joined(), None).unwrap_err();
    assert!(
        error.ends_with("at \"/data\": no such file or directory"),
        "{error}"
    );
    spec.mounts.pop();
    spec.process.args = vec!["true".to_owned()];
    spec.process.user.uid = 100_000;
    let error = place.run_in(&spec, pod.joined(), None).unwrap_err();
    assert!(
        error.contains("not mapped in the pod's user namespace"),
        "{error}"
    );
    spec.process.user.uid = 0;
    spec.mounts
        .push(bind("/tmp".as_ref(), "/data", &["rshared"]));
    let error = place.run_in(&spec, pod.joined(), None).unwrap_err();
    assert!(error.contains("cannot propagate to the host"), "{error}");
}

fn shared_processes() {
    let place = ContainerFixture::new();
    let pod = pod(true);
    place.target.add(pod.pause.as_ref().unwrap().pid).unwrap();
    let mut spec = in_pod(script("cat /proc/1/comm; ls -l /proc/1/exe"));
    from_pod(&mut spec, &[NamespaceKind::Pid]);
    let outcome = place.run_in(&spec, pod.joined(), None).unwrap();
    assert_eq!(outcome.stdout.lines().next(), Some("pause"), "{outcome:?}");
    // What the pause process executes is no business of a container's.
    assert!(
        outcome.stderr.contains("/proc/1/exe: Permission denied")
            || outcome.stderr.contains("cannot read link"),
        "{outcome:?}"
    );
}

fn privileges_end_at_the_pod() {
    let place = ContainerFixture::new();
    let pod = pod(false);
    let mut spec = in_pod(script(
        "mknod /tmp/x c 1 5; echo 1 > /proc/sys/vm/drop_caches; mount -t tmpfs none /home && echo mounted; \
         cat /proc/self/oom_score_adj",
    ));
    spec.linux.masked_paths.clear();
    spec.linux.readonly_paths.clear();
    spec.process.oom_score_adj = Some(555);
    let names = spec.process.capabilities.as_mut().unwrap();
    for names in [
        &mut names.bounding,
        &mut names.effective,
        &mut names.permitted,
    ] {
        names.push("CAP_SYS_ADMIN".to_owned());
    }
    let outcome = place.run_in(&spec, pod.joined(), None).unwrap();
    assert_eq!(outcome.stdout, "mounted\n555\n", "{outcome:?}");
    assert!(
        outcome
            .stderr
            .contains("mknod: /tmp/x: Operation not permitted"),
        "{outcome:?}"
    );
    assert!(outcome.stderr.contains("drop_caches"), "{outcome:?}");
}
