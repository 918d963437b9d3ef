//! Images and containers that try to get at the host. Each is one that got through in some runtime
//! before.

use std::{fs, os::unix::fs::symlink};

use crate::{
    Case,
    fixture::{ContainerFixture, bind, process, script, spec},
};

pub(crate) const CASES: &[Case] = &[
    ("attacks::links_in_the_image", links_in_the_image),
    ("attacks::proc_elsewhere", proc_elsewhere),
    ("attacks::mount_in_proc", mount_in_proc),
    ("attacks::directory_of_the_host", directory_of_the_host),
    ("attacks::leaked_directory", leaked_directory),
    ("attacks::program_of_the_host", program_of_the_host),
    (
        "attacks::tracing_a_joining_process",
        tracing_a_joining_process,
    ),
    ("attacks::dangling_links", dangling_links),
    ("attacks::links_below_a_volume", links_below_a_volume),
];

/// CVE-2021-30465 and older: destinations of mounts through symbolic links.
fn links_in_the_image() {
    let place = ContainerFixture::new();
    let outside = place.directory("outside");
    let data = place.directory("data");
    fs::write(data.join("x"), "x").unwrap();
    symlink(&outside, place.layer().join("abs")).unwrap();
    symlink("../../../../../../../..", place.layer().join("up")).unwrap();
    let mut spec = script("cat /abs/in/x; cat /etc/up/x");
    spec.mounts.push(bind(&data, "/abs/in", &[]));
    spec.mounts.push(bind(&data, "/up/../etc/up", &[]));
    let outcome = place.run(&spec).unwrap();
    assert_eq!(outcome.stdout, "xx", "{outcome:?}");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    assert!(!std::path::Path::new("/etc/up").exists());
}

/// CVE-2019-16884, CVE-2019-19921: a `/proc` that is not where it seems to be.
fn proc_elsewhere() {
    let place = ContainerFixture::new();
    fs::remove_dir(place.layer().join("proc")).unwrap();
    symlink("/tmp", place.layer().join("proc")).unwrap();
    let error = place.run(&script("true")).unwrap_err();
    assert!(
        error.contains("filesystem \"proc\" must be mounted on ordinary directory"),
        "{error}"
    );
}

fn mount_in_proc() {
    let place = ContainerFixture::new();
    let data = place.directory("data");
    let mut spec = script("cat /proc/meminfo");
    fs::write(data.join("meminfo"), "none\n").unwrap();
    spec.mounts
        .push(bind(&data.join("meminfo"), "/proc/meminfo", &[]));
    assert_eq!(place.run(&spec).unwrap().stdout, "none\n");
    symlink("/proc/self/attr", place.layer().join("attr")).unwrap();
    spec.mounts
        .push(bind(&data.join("meminfo"), "/attr/exec", &[]));
    let error = place.run(&spec).unwrap_err();
    assert!(
        error.contains("cannot be mounted because it is inside /proc"),
        "{error}"
    );
}

/// CVE-2024-21626: a working directory that is an open directory of the host.
fn directory_of_the_host() {
    let place = ContainerFixture::new();
    let leaked =
        rustix::fs::open("/", rustix::fs::OFlags::PATH, rustix::fs::Mode::empty()).unwrap();
    for number in 0..40 {
        let mut spec = script("pwd; ls");
        spec.process.cwd = format!("/proc/self/fd/{number}").into();
        match place.run(&spec) {
            // A directory of its own at best.
            Ok(outcome) => assert!(!outcome.stdout.contains("lost+found"), "{outcome:?}"),
            Err(error) => assert!(error.contains("chdir to cwd"), "{error}"),
        }
    }
    drop(leaked);
}

fn leaked_directory() {
    let place = ContainerFixture::new();
    let spec = script("echo; ln -s /proc/self/fd /link; sleep 1000");
    let running = place.start(&spec, Default::default());
    let leaked =
        rustix::fs::open("/", rustix::fs::OFlags::PATH, rustix::fs::Mode::empty()).unwrap();
    for number in 0..40 {
        let mut process = process(&["ls", "-a"]);
        process.cwd = format!("/link/{number}").into();
        match place.exec(&running, &spec, &process) {
            Ok(outcome) => assert!(!outcome.stdout.contains("lost+found"), "{outcome:?}"),
            Err(error) => assert!(error.contains("chdir to cwd"), "{error}"),
        }
    }
    drop(leaked);
    running.kill();
}

/// CVE-2019-5736: a container that executes the runtime's own program and then writes to it.
fn program_of_the_host() {
    use std::os::fd::AsRawFd;
    if std::env::var_os("RUBELET_T_SEALED").is_none() {
        // As the shim: executed from the sealed descriptor.
        let sealed = rubelet_container::sealed_executable().unwrap();
        let path = format!("/proc/self/fd/{}", sealed.as_raw_fd());
        let output = std::process::Command::new(path)
            .args(["--case", "attacks::program_of_the_host"])
            .env("RUBELET_T_SEALED", "1")
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        return;
    }
    let place = ContainerFixture::new();
    // The descriptor stays open for writing at what was executed, if anything can be opened.
    let mut all = spec(&["/proc/self/exe", "--case", "attacks::inside"]);
    let names = all.process.capabilities.as_mut().unwrap();
    for names in [
        &mut names.bounding,
        &mut names.effective,
        &mut names.permitted,
    ] {
        names.push("CAP_SYS_PTRACE".to_owned());
    }
    // The host's libraries are not there: the program can't even start, but it is executed.
    let result = place.run(&all);
    assert!(
        result.is_err() || result.as_ref().is_ok_and(|outcome| outcome.code != Some(0)),
        "{result:?}"
    );
    let error = fs::OpenOptions::new()
        .write(true)
        .open("/proc/self/exe")
        .unwrap_err();
    assert!(
        matches!(
            error.raw_os_error(),
            Some(libc::EROFS | libc::ETXTBSY | libc::EPERM | libc::EACCES)
        ),
        "{error}"
    );
    let mountinfo = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mountinfo.contains(place.dir.path().to_str().unwrap()));
}

/// CVE-2016-9962: a process that joins is hidden from those that are there until it executes.
fn tracing_a_joining_process() {
    use crate::fixture::{created, pipes};
    use rubelet_container::{ExecLaunch, exec};
    use std::os::fd::AsFd;
    let place = ContainerFixture::new();
    let mut spec = script(
        "echo; read pid; readlink /proc/$pid/exe && echo seen; readlink /proc/$pid/fd/0 && echo file; ls /proc/$pid/root/ > /dev/null && echo root; echo done",
    );
    // Not even with the right to trace others: the program file must not leak to it.
    spec.process
        .capabilities
        .as_mut()
        .unwrap()
        .effective
        .retain(|name| name != "CAP_SYS_PTRACE");
    let mut running = place.start(&spec, Default::default());
    let (stdio, _ends) = pipes();
    let process = process(&["sleep", "1000"]);
    let mut launching = exec(ExecLaunch {
        target: running.pidfd.as_fd(),
        spec: &spec,
        process: &process,
        stdio,
        cgroup: &place.target,
        seccomp: None,
    })
    .unwrap();
    created(&mut launching.reports).unwrap();
    let status = fs::read_to_string(format!("/proc/{}/status", launching.pid)).unwrap();
    let inside = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))
        .unwrap();
    let inside = inside.split_whitespace().last().unwrap();
    crate::fixture::say(&mut running.ends, &format!("{inside}\n"));
    let mut text = String::new();
    std::io::Read::read_to_string(&mut running.ends.stdout, &mut text).unwrap();
    assert_eq!(text, "done\n");
}

fn dangling_links() {
    let place = ContainerFixture::new();
    let data = place.directory("data");
    fs::write(data.join("x"), "x").unwrap();
    symlink("/run/later", place.layer().join("tmp/link")).unwrap();
    let mut spec = script("cat /run/later/deep/x");
    spec.mounts.push(bind(&data, "/tmp/link/deep", &[]));
    let outcome = place.run(&spec).unwrap();
    assert_eq!(outcome.stdout, "x", "{outcome:?}");
}

/// A directory that the runtime mounts at a path of the image's choice goes there or nowhere: links of
/// every kind, at every depth, also in what was mounted before.
fn links_below_a_volume() {
    let place = ContainerFixture::new();
    let outside = place.directory("outside");
    let own = place.directory("own");
    let shared = place.directory("shared");
    let layer = place.layer();
    fs::create_dir_all(layer.join("a/b")).unwrap();
    symlink("/sys", layer.join("sys-link")).unwrap();
    symlink("/proc", layer.join("proc-link")).unwrap();
    symlink(&outside, layer.join("absolute")).unwrap();
    symlink("../../../../../../../../etc", layer.join("a/up")).unwrap();
    symlink("/a/b", layer.join("a/b/inside")).unwrap();
    symlink("sys-link", layer.join("chain")).unwrap();
    symlink("/nowhere", layer.join("dangling")).unwrap();
    symlink("/dev", shared.join("planted")).unwrap();
    for path in [
        "/sys-link",
        "/sys-link/kernel",
        "/proc-link",
        "/proc-link/self/attr",
        "/absolute",
        "/absolute/deep/er",
        "/a/up",
        "/a/up/x",
        "/a/b/inside",
        "/a/b/inside/x",
        "/chain/fs",
        "/dangling",
        "/dangling/x",
        "/shared/planted",
        "/shared/planted/shm",
    ] {
        let mut spec = script("true");
        spec.mounts.push(bind(&shared, "/shared", &[]));
        spec.mounts
            .push(bind(&own, path, &["rw", rubelet_oci::NO_SYMLINKS]));
        let error = place.run(&spec).unwrap_err();
        assert!(error.contains("is a symbolic link"), "{path}: {error}");
    }
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    assert_eq!(fs::read_dir(&own).unwrap().count(), 0);
    assert!(!layer.join("nowhere").exists() && !layer.join("a/b/x").exists());
    // What lies in another mount of the container is no link.
    let mut spec = script("touch /shared/new/file");
    spec.mounts.push(bind(&shared, "/shared", &[]));
    spec.mounts
        .push(bind(&own, "/shared/new", &["rw", rubelet_oci::NO_SYMLINKS]));
    place.run(&spec).unwrap();
    assert!(own.join("file").exists() && !shared.join("new/file").exists());
}
