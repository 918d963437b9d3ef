//! A root file system with busybox, a cgroup, and a container run to its end.

use std::{
    fs,
    io::{Read, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::symlink,
    },
    path::{Path, PathBuf},
};

use rubelet_cgroup_plan::CgroupPath;
use rubelet_container::{
    ChildReport, ChildReports, ExecLaunch, JoinedNamespaces, Launch, LaunchError, Launching,
    Overlay, RootfsSource, Stdio, exec, launch, open_barrier, read_report,
};
use rubelet_host::{CgroupFs, cgroup::CgroupTarget};
use rubelet_oci::{Capabilities, Mount, Namespace, NamespaceKind, Process, Spec};
use rustix::{
    event::{PollFd, PollFlags, poll},
    pipe::{PipeFlags, pipe_with},
    process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid},
};

/// Everything that tests make begins with this.
const PREFIX: &str = "rbt-container";

/// What other runtimes give a container that asks for nothing.
pub(crate) const DEFAULT_CAPABILITIES: [&str; 14] = [
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FSETID",
    "CAP_FOWNER",
    "CAP_MKNOD",
    "CAP_NET_RAW",
    "CAP_SETGID",
    "CAP_SETUID",
    "CAP_SETFCAP",
    "CAP_SETPCAP",
    "CAP_NET_BIND_SERVICE",
    "CAP_SYS_CHROOT",
    "CAP_KILL",
    "CAP_AUDIT_WRITE",
];

/// A place for one container, gone with it.
pub(crate) struct ContainerFixture {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) cgroups: CgroupFs,
    pub(crate) cgroup: CgroupPath,
    pub(crate) target: CgroupTarget,
    pub(crate) overlay: Overlay,
}

/// How a container ended, and what it said.
#[derive(Debug)]
pub(crate) struct ContainerResult {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) warnings: Vec<String>,
}

impl ContainerFixture {
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new().prefix(PREFIX).tempdir().unwrap();
        let layer = dir.path().join("layer");
        for directory in ["bin", "etc", "proc", "sys", "dev", "tmp", "root", "home"] {
            fs::create_dir_all(layer.join(directory)).unwrap();
        }
        fs::copy("/bin/busybox", layer.join("bin/busybox")).unwrap();
        for applet in [
            "sh", "cat", "echo", "id", "ls", "mount", "sleep", "touch", "stat", "hostname", "ps",
            "readlink", "mkdir", "tty", "stty", "ulimit", "env", "head", "wc", "grep", "true",
            "umount", "ip", "dd", "mknod", "chroot", "kill", "pwd", "ln", "rm", "seq", "cp",
            "test",
        ] {
            symlink("busybox", layer.join("bin").join(applet)).unwrap();
        }
        fs::write(layer.join("etc/passwd"), "root:x:0:0::/root:/bin/sh\n").unwrap();
        let overlay = Overlay {
            lower: vec![layer],
            upper: Some(dir.path().join("upper")),
            work: Some(dir.path().join("work")),
        };
        for directory in ["upper", "work", "at"] {
            fs::create_dir(dir.path().join(directory)).unwrap();
        }
        let cgroups = CgroupFs::detect(Path::new("/sys/fs/cgroup")).unwrap();
        let cgroup = CgroupPath::parse(&format!("/{PREFIX}-{}", std::process::id())).unwrap();
        let target = cgroups.create(&cgroup).unwrap();
        Self {
            dir,
            cgroups,
            cgroup,
            target,
            overlay,
        }
    }

    pub(crate) fn layer(&self) -> PathBuf {
        self.overlay.lower[0].clone()
    }

    pub(crate) fn at(&self) -> PathBuf {
        self.dir.path().join("at")
    }

    /// Makes a directory of the host to be mounted.
    pub(crate) fn directory(&self, name: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::create_dir_all(&path).unwrap();
        path
    }

    pub(crate) fn launch(
        &self,
        spec: &Spec,
        stdio: Stdio,
        namespaces: JoinedNamespaces<'_>,
        seccomp: Option<&[u8]>,
    ) -> Result<Launching, LaunchError> {
        launch(Launch {
            spec,
            rootfs: RootfsSource::Overlay(&self.overlay),
            mount_at: &self.at(),
            stdio,
            cgroup: &self.target,
            namespaces,
            seccomp,
        })
    }

    /// Runs a container to its end.
    pub(crate) fn run(&self, spec: &Spec) -> Result<ContainerResult, String> {
        self.run_in(spec, JoinedNamespaces::default(), None)
    }

    pub(crate) fn run_in(
        &self,
        spec: &Spec,
        namespaces: JoinedNamespaces<'_>,
        seccomp: Option<&[u8]>,
    ) -> Result<ContainerResult, String> {
        let (stdio, ends) = pipes();
        let launching = self.launch(spec, stdio, namespaces, seccomp);
        finish(launching.map_err(|error| error.to_string())?, ends)
    }

    /// Starts a container that continues until it is told to end; it is killed with the place.
    pub(crate) fn start(&self, spec: &Spec, namespaces: JoinedNamespaces<'_>) -> RunningContainer {
        let (stdio, ends) = pipes();
        let launching = self.launch(spec, stdio, namespaces, None).unwrap();
        let barrier = launching.barrier;
        let mut reports = launching.reports;
        let (pid, pidfd) = match launching.prepares {
            false => (launching.pid, launching.pidfd),
            true => init(&mut reports, &launching.pidfd).unwrap(),
        };
        let mut running = RunningContainer { pidfd, pid, ends };
        created(&mut reports).unwrap();
        open_barrier(barrier);
        started(&mut reports).unwrap();
        let mut byte = [0];
        // What such containers say first.
        assert_eq!(running.ends.stdout.read(&mut byte).unwrap(), 1);
        running
    }

    pub(crate) fn exec(
        &self,
        running: &RunningContainer,
        spec: &Spec,
        process: &Process,
    ) -> Result<ContainerResult, String> {
        let (stdio, ends) = pipes();
        let launching = exec(ExecLaunch {
            target: running.pidfd.as_fd(),
            spec,
            process,
            stdio,
            cgroup: &self.target,
            seccomp: None,
        });
        finish(launching.map_err(|error| error.to_string())?, ends)
    }
}

impl Drop for ContainerFixture {
    fn drop(&mut self) {
        let _ = self.cgroups.kill(&self.cgroup);
        // The processes are children: what is reaped can leave its cgroup.
        while let Ok(Some(_)) = waitid(WaitId::All, WaitIdOptions::EXITED) {}
        let _ = self.cgroups.remove(&self.cgroup);
    }
}

/// Removes the cgroups of tests that died.
pub(crate) fn remove_leftovers() {
    let Ok(cgroups) = CgroupFs::detect(Path::new("/sys/fs/cgroup")) else {
        return;
    };
    let Ok(top) = fs::read_dir("/sys/fs/cgroup/memory").or(fs::read_dir("/sys/fs/cgroup")) else {
        return;
    };
    for entry in top.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(pid) = name.strip_prefix(&format!("{PREFIX}-")) else {
            continue;
        };
        if !Path::new("/proc").join(pid).exists() {
            let path = CgroupPath::parse(&format!("/{name}")).unwrap();
            let _ = cgroups.kill(&path);
            let _ = cgroups.remove(&path);
        }
    }
}

/// A container that runs.
pub(crate) struct RunningContainer {
    pub(crate) pidfd: OwnedFd,
    pub(crate) pid: i32,
    pub(crate) ends: StdioEnds,
}

impl RunningContainer {
    pub(crate) fn kill(&self) {
        pidfd_send_signal(&self.pidfd, Signal::KILL).unwrap();
        waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED).unwrap();
    }
}

/// The other ends of a process's standard files.
pub(crate) struct StdioEnds {
    pub(crate) stdin: fs::File,
    pub(crate) stdout: fs::File,
    pub(crate) stderr: fs::File,
}

pub(crate) fn pipes() -> (Stdio, StdioEnds) {
    let pipe = || pipe_with(PipeFlags::CLOEXEC).unwrap();
    let ((stdin, to), (from, stdout), (errors, stderr)) = (pipe(), pipe(), pipe());
    let stdio = Stdio::Files {
        stdin,
        stdout,
        stderr,
    };
    let ends = StdioEnds {
        stdin: to.into(),
        stdout: from.into(),
        stderr: errors.into(),
    };
    (stdio, ends)
}

/// Waits for the next report.
pub(crate) fn next(reports: &mut ChildReports) -> ChildReport {
    loop {
        if let Some(report) = read_report(reports).unwrap() {
            return report;
        }
        let fd = reports.as_fd();
        poll(&mut [PollFd::new(&fd, PollFlags::IN)], None).unwrap();
    }
}

/// Waits until the container is created.
pub(crate) fn created(
    reports: &mut ChildReports,
) -> Result<(Option<OwnedFd>, Vec<String>), String> {
    match next(reports) {
        ChildReport::Created { console, warnings } => Ok((console, warnings)),
        ChildReport::Failed(text) => Err(text),
        other => Err(format!("{other:?}")),
    }
}

pub(crate) fn started(reports: &mut ChildReports) -> Result<(), String> {
    match next(reports) {
        ChildReport::Started => Ok(()),
        ChildReport::StartFailed(text) => Err(text),
        other => Err(format!("{other:?}")),
    }
}

/// Lets a process run to its end.
pub(crate) fn finish(launching: Launching, ends: StdioEnds) -> Result<ContainerResult, String> {
    let Launching {
        mut pidfd,
        prepares,
        mut reports,
        barrier,
        ..
    } = launching;
    let StdioEnds {
        stdin,
        mut stdout,
        mut stderr,
    } = ends;
    drop(stdin);
    if prepares {
        pidfd = init(&mut reports, &pidfd)?.1;
    }
    let result = created(&mut reports).and_then(|(_, warnings)| {
        open_barrier(barrier);
        started(&mut reports)?;
        Ok(warnings)
    });
    let (mut out, mut errors) = (String::new(), String::new());
    stdout.read_to_string(&mut out).unwrap();
    stderr.read_to_string(&mut errors).unwrap();
    let status = waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED);
    let status = status.unwrap().unwrap();
    Ok(ContainerResult {
        warnings: result?,
        code: status.exit_status(),
        stdout: out,
        stderr: errors,
    })
}

/// The init that another process prepares, which is reaped.
fn init(reports: &mut ChildReports, preparing: &OwnedFd) -> Result<(i32, OwnedFd), String> {
    let report = next(reports);
    waitid(WaitId::PidFd(preparing.as_fd()), WaitIdOptions::EXITED).unwrap();
    match report {
        ChildReport::Init { pid, pidfd } => Ok((pid, pidfd)),
        ChildReport::Failed(why) => Err(why),
        other => panic!("{other:?}"),
    }
}

/// A specification as the CRI gives it for a plain container.
pub(crate) fn spec(args: &[&str]) -> Spec {
    let mut spec = Spec {
        process: process(args),
        ..Spec::default()
    };
    spec.mounts = vec![
        mount("/proc", "proc", "proc", &["nosuid", "noexec", "nodev"]),
        mount(
            "/dev",
            "tmpfs",
            "tmpfs",
            &["nosuid", "strictatime", "mode=755", "size=65536k"],
        ),
        mount(
            "/dev/pts",
            "devpts",
            "devpts",
            &[
                "nosuid",
                "noexec",
                "newinstance",
                "ptmxmode=0666",
                "mode=0620",
                "gid=5",
            ],
        ),
        mount(
            "/dev/mqueue",
            "mqueue",
            "mqueue",
            &["nosuid", "noexec", "nodev"],
        ),
        mount(
            "/sys",
            "sysfs",
            "sysfs",
            &["nosuid", "noexec", "nodev", "ro"],
        ),
        mount(
            "/sys/fs/cgroup",
            "cgroup",
            "cgroup",
            &["nosuid", "noexec", "nodev", "relatime", "ro"],
        ),
    ];
    let new = |kind| Namespace { kind, path: None };
    spec.linux.namespaces = [
        NamespaceKind::Pid,
        NamespaceKind::Mount,
        NamespaceKind::Network,
        NamespaceKind::Ipc,
        NamespaceKind::Uts,
        NamespaceKind::Cgroup,
    ]
    .map(new)
    .to_vec();
    spec.hostname = "box".to_owned();
    let paths = |paths: &[&str]| paths.iter().map(|&path| path.to_owned()).collect();
    spec.linux.masked_paths = paths(&[
        "/proc/asound",
        "/proc/acpi",
        "/proc/kcore",
        "/proc/keys",
        "/proc/latency_stats",
        "/proc/timer_list",
        "/proc/timer_stats",
        "/proc/sched_debug",
        "/proc/scsi",
        "/sys/firmware",
        "/sys/devices/virtual/powercap",
    ]);
    spec.linux.readonly_paths = paths(&[
        "/proc/bus",
        "/proc/fs",
        "/proc/irq",
        "/proc/sys",
        "/proc/sysrq-trigger",
    ]);
    spec
}

pub(crate) fn process(args: &[&str]) -> Process {
    let names: Vec<String> = DEFAULT_CAPABILITIES
        .iter()
        .map(|&one| one.to_owned())
        .collect();
    Process {
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        env: vec!["PATH=/bin".to_owned()],
        cwd: "/".into(),
        capabilities: Some(Capabilities {
            bounding: names.clone(),
            effective: names.clone(),
            permitted: names,
            ..Capabilities::default()
        }),
        ..Process::default()
    }
}

/// One that runs a shell script.
pub(crate) fn script(text: &str) -> Spec {
    spec(&["sh", "-c", text])
}

pub(crate) fn mount(to: &str, kind: &str, source: &str, options: &[&str]) -> Mount {
    Mount {
        destination: to.into(),
        kind: kind.to_owned(),
        source: source.into(),
        options: options.iter().map(|&option| option.to_owned()).collect(),
        ..Mount::default()
    }
}

pub(crate) fn bind(source: &Path, to: &str, options: &[&str]) -> Mount {
    let mut all = vec!["rbind"];
    all.extend(options);
    mount(to, "bind", source.to_str().unwrap(), &all)
}

/// Writes a line into a process's standard input.
pub(crate) fn say(ends: &mut StdioEnds, text: &str) {
    ends.stdin.write_all(text.as_bytes()).unwrap();
}
