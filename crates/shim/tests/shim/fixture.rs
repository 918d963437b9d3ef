//! A shim of its own for a test, with whatever it needs, all of it gone afterwards.

use std::{
    fs,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::fs::symlink,
    },
    path::{Path, PathBuf},
    process::Command,
    sync::Once,
    time::Duration,
};

use rubelet_cgroup_plan::CgroupPath;
use rubelet_host::CgroupFs;
use rubelet_oci::{Linux, Mount, Namespace, NamespaceKind, Process, Root, Spec};
use rubelet_shim::{
    ExitRecord,
    client::{CallError, Client},
    protocol::{
        Call, CallFailure, ContainerState, CreateContainer, Event, ExternalRuntime, FailureKind,
        Rootfs, RuntimeChoice, SandboxSetup, ShimReply, ShimState, SignalTarget,
    },
    spawn::{self, SpawnOptions, Spawned},
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Longer than anything takes that works.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// How the names of these tests' cgroups and directories begin, before the run's process ID.
const PREFIX: &str = "rbt-shim-";

static SWEEP: Once = Once::new();

/// Removes what runs of these tests have left that died.
fn sweep() {
    let of_dead_runs = |dir: &Path| -> Vec<String> {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let is_dead = |name: &String| {
            let rest = name.strip_prefix(PREFIX);
            let run = rest.and_then(|rest| rest.split('-').next());
            run.is_some_and(|run| !Path::new("/proc").join(run).exists())
        };
        names.filter(is_dead).collect()
    };
    for hierarchy in ["/sys/fs/cgroup", "/sys/fs/cgroup/pids"] {
        for name in of_dead_runs(Path::new(hierarchy)) {
            remove_cgroups(&CgroupPath::parse(&name).unwrap());
        }
    }
    for name in of_dead_runs(&std::env::temp_dir()) {
        let directory = std::env::temp_dir().join(name);
        unmount_below(&directory);
        let _ = fs::remove_dir_all(directory);
    }
}

/// Takes away what is mounted below a directory.
fn unmount_below(dir: &Path) {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let places = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    for place in places.filter(|place| Path::new(place).starts_with(dir)) {
        let _ = rubelet_host::mount::unmount(Path::new(place), true);
    }
}

/// A shim with its directory and its cgroups.
pub(crate) struct Shim {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) client: Client,
    pub(crate) pid: i32,
    pub(crate) pidfd: OwnedFd,
    pub(crate) cgroup: CgroupPath,
    runtime: RuntimeChoice,
}

/// What a test's container is like.
#[derive(Default)]
pub(crate) struct Recipe {
    pub(crate) stdin: bool,
    pub(crate) stdin_once: bool,
    pub(crate) tty: bool,
    /// In the host's process IDs instead of its own.
    pub(crate) host_pids: bool,
    pub(crate) overlay: bool,
    pub(crate) max_log_line: usize,
    pub(crate) max_log_bytes: u64,
    pub(crate) log_path: Option<PathBuf>,
    /// Namespaces of the pod that it joins, and where they are.
    pub(crate) joins: Vec<(NamespaceKind, PathBuf)>,
}

/// The program with the shim in it: the example of this crate, which is built with its tests.
fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let directory = test.parent().unwrap().parent().unwrap();
    let program = directory.join("examples/shim_by_hand");
    assert!(
        program.exists(),
        "{} is missing: cargo build -p rubelet-shim --examples",
        program.display()
    );
    program
}

/// All runtimes of this machine that containers can be made with. The embedded one is the last.
pub(crate) fn runtimes() -> Vec<RuntimeChoice> {
    let external = ["/usr/sbin/runc", "/usr/bin/crun"]
        .map(PathBuf::from)
        .into_iter()
        .filter(|binary| rubelet_needs::have(binary.exists(), binary.display()))
        .map(|binary| {
            RuntimeChoice::External(ExternalRuntime {
                binary,
                root: PathBuf::new(),
                systemd_cgroup: false,
            })
        });
    external.chain([RuntimeChoice::Embedded]).collect()
}

/// crun refuses to work where controllers are left to the unified hierarchy beside those of version
/// 1; here is one that doesn't see that hierarchy.
fn blinkered(crun: &Path, dir: &Path) -> PathBuf {
    let script = format!(
        "#!/bin/sh\nexec unshare --mount sh -c 'umount /sys/fs/cgroup/unified; exec {} \"$@\"' crun \"$@\"\n",
        crun.display()
    );
    let path = dir.join("crun");
    install_script(&path, &script);
    path
}

/// Runs a test with each runtime, in a sandbox that has nothing of its own.
pub(crate) fn with_each_runtime(name: &str, test: impl Fn(&mut Shim)) {
    with_each_new_shim(name, |shim| {
        shim.make_sandbox();
        test(shim);
    });
}

/// Runs a test with each runtime, without a sandbox.
pub(crate) fn with_each_new_shim(name: &str, test: impl Fn(&mut Shim)) {
    for (number, runtime) in runtimes().into_iter().enumerate() {
        eprintln!("{name} with {runtime:?}");
        test(&mut Shim::start(&format!("{name}-{number}"), runtime));
    }
}

impl Shim {
    /// Starts one; `name` is unique among the tests.
    pub(crate) fn start(name: &str, mut runtime: RuntimeChoice) -> Self {
        SWEEP.call_once(sweep);
        let run = std::process::id();
        let dir = tempfile::Builder::new()
            .prefix(&format!("{PREFIX}{run}-{name}-"))
            .tempdir()
            .unwrap();
        if let RuntimeChoice::External(external) = &mut runtime {
            external.root = dir.path().join("runtime");
            let unified = Path::new("/sys/fs/cgroup/unified/cgroup.controllers");
            if external.binary.ends_with("crun") && unified.exists() {
                external.binary = blinkered(&external.binary, dir.path());
            }
        }
        let cgroup = CgroupPath::parse(&format!("/{PREFIX}{run}-{name}")).unwrap();
        remove_cgroups(&cgroup);
        let spawned = spawn(dir.path(), &cgroup);
        let client = Client::new(spawned.socket, true, PATIENCE).unwrap();
        Self {
            dir,
            client,
            pid: spawned.pid,
            pidfd: spawned.pidfd,
            cgroup,
            runtime,
        }
    }

    pub(crate) fn is_embedded(&self) -> bool {
        self.runtime == RuntimeChoice::Embedded
    }

    /// Makes containers with another program from now on.
    pub(crate) fn use_runtime(&mut self, script: &str) -> PathBuf {
        let binary = self.path().join("odd");
        install_script(&binary, &format!("#!/bin/sh\n{script}\n"));
        self.runtime = RuntimeChoice::External(ExternalRuntime {
            binary: binary.clone(),
            root: self.path().join("odd-root"),
            systemd_cgroup: true,
        });
        binary
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn call(&mut self, call: Call) -> Result<ShimReply, CallError> {
        self.client.call(call, &[]).map(|(answer, _)| answer)
    }

    /// The failure of a call that must not be done.
    pub(crate) fn refused(&mut self, call: Call) -> CallFailure {
        failure(self.call(call))
    }

    pub(crate) fn make_sandbox(&mut self) {
        let setup = SandboxSetup {
            id: "pod".into(),
            ..SandboxSetup::default()
        };
        self.call(Call::MakeSandbox(Box::new(setup))).unwrap();
    }

    pub(crate) fn bundle(&self, id: &str) -> PathBuf {
        self.path().join(id)
    }

    pub(crate) fn container_cgroup(&self, id: &str) -> CgroupPath {
        self.cgroup.join(id).unwrap()
    }

    /// Lays out a bundle and says how to create its container.
    pub(crate) fn prepare(&self, id: &str, script: &str, recipe: Recipe) -> CreateContainer {
        let bundle = self.bundle(id);
        let root = make_root(&bundle, recipe.overlay);
        let cgroup = self.container_cgroup(id);
        let spec = spec(script, &cgroup, &recipe);
        fs::write(
            bundle.join("config.json"),
            serde_json::to_vec(&spec).unwrap(),
        )
        .unwrap();
        if self.is_embedded() {
            cgroups().create(&cgroup).unwrap();
        }
        CreateContainer {
            id: id.into(),
            runtime: self.runtime.clone(),
            rootfs: root,
            cgroup,
            log_path: recipe.log_path.or_else(|| Some(bundle.join("0.log"))),
            stdin: recipe.stdin,
            stdin_once: recipe.stdin_once,
            tty: recipe.tty,
            has_seccomp: false,
            max_log_bytes: recipe.max_log_bytes,
            pid_target: None,
            max_log_line: match recipe.max_log_line {
                0 => 16 << 10,
                length => length,
            },
            bundle,
        }
    }

    pub(crate) fn create(&mut self, id: &str, script: &str, recipe: Recipe) -> i32 {
        let what = self.prepare(id, script, recipe);
        match self.call(Call::Create(Box::new(what))).unwrap() {
            ShimReply::Created { pid } => pid,
            other => panic!("{other:?}"),
        }
    }

    /// Creates and starts a container that runs a shell script; its process ID.
    pub(crate) fn run(&mut self, id: &str, script: &str, recipe: Recipe) -> i32 {
        let pid = self.create(id, script, recipe);
        self.call(Call::Start { id: id.into() }).unwrap();
        pid
    }

    pub(crate) fn signal(&mut self, id: &str, signal: i32, target: SignalTarget) {
        let id = id.into();
        self.call(Call::Signal { id, signal, target }).unwrap();
    }

    pub(crate) fn delete(&mut self, id: &str) {
        self.call(Call::Delete { id: id.into() }).unwrap();
    }

    pub(crate) fn state(&mut self) -> ShimState {
        match self.call(Call::State).unwrap() {
            ShimReply::State(state) => *state,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn container(&mut self, id: &str) -> Option<ContainerState> {
        self.state().containers.into_iter().find(|one| one.id == id)
    }

    /// The end of a container; others of its events are skipped.
    pub(crate) fn exit(&mut self, id: &str) -> ExitRecord {
        loop {
            let (sequence, event) = self.client.event().unwrap();
            self.client.ack(sequence).unwrap();
            if let Event::Exited { container, exit } = event
                && container == id
            {
                return exit;
            }
        }
    }

    /// What is in a container's log: stream, whether it is partial, text.
    pub(crate) fn log(&self, id: &str) -> Vec<(String, bool, String)> {
        let text = fs::read_to_string(self.bundle(id).join("0.log")).unwrap();
        text.lines().map(entry).collect()
    }

    /// The texts in a container's log.
    pub(crate) fn lines(&self, id: &str) -> Vec<String> {
        self.log(id).into_iter().map(|(_, _, text)| text).collect()
    }

    /// Waits until a container's log has a line.
    pub(crate) fn wait_for_line(&self, id: &str, line: &str) {
        wait_until(&format!("{line:?} in the log"), || {
            self.bundle(id).join("0.log").exists() && self.lines(id).iter().any(|one| one == line)
        });
    }

    /// Whether the shim's process is there.
    pub(crate) fn is_alive(&self) -> bool {
        !ends_within(&self.pidfd, Duration::ZERO)
    }

    /// Connects as the next agent does.
    pub(crate) fn reconnect(&mut self) {
        let socket = spawn::connect(self.path()).unwrap();
        self.client = Client::new(socket, true, PATIENCE).unwrap();
    }
}

/// Starts the process of a shim.
pub(crate) fn spawn(dir: &Path, cgroup: &CgroupPath) -> Spawned {
    let own = cgroup.join("shim").unwrap();
    spawn::spawn(SpawnOptions {
        executable: &program(),
        dir,
        cgroup: Some(&own),
    })
    .unwrap()
}

/// The failure that a call must have.
pub(crate) fn failure<T: std::fmt::Debug>(result: Result<T, CallError>) -> CallFailure {
    match result {
        Err(CallError::Failure(failure)) => failure,
        other => panic!("{other:?}"),
    }
}

/// Panics unless a failure is of a kind and says something.
pub(crate) fn assert_failure(failure: &CallFailure, kind: FailureKind, text: &str) {
    assert_eq!(failure.kind, kind, "{failure:?}");
    assert!(failure.message.contains(text), "{failure:?}");
}

/// Waits for a condition.
pub(crate) fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let timer = Timespec {
        tv_sec: 0,
        tv_nsec: 5_000_000,
    };
    for _ in 0..PATIENCE.as_millis() / 5 {
        if condition() {
            return;
        }
        poll(&mut [], Some(&timer)).unwrap();
    }
    panic!("{what} did not come");
}

/// What the shim has open.
pub(crate) fn open_files(shim: &Shim) -> Vec<PathBuf> {
    let entries = fs::read_dir(format!("/proc/{}/fd", shim.pid)).unwrap();
    // One that was closed meanwhile has no link.
    let link = |entry: fs::DirEntry| fs::read_link(entry.path()).unwrap_or_default();
    entries.flatten().map(link).collect()
}

/// How many descriptors the shim has open once a container runs: it holds its cgroup open until it is
/// there in every hierarchy, and for a moment more.
pub(crate) fn settled_descriptors(shim: &Shim) -> usize {
    wait_until("it is in its cgroup", || {
        let text = fs::read_to_string(format!("/proc/{}/cgroup", shim.pid)).unwrap();
        let is_there = text.lines().all(|line| line.ends_with("/shim"));
        let mut open = open_files(shim).into_iter();
        is_there && !open.any(|path| path.ends_with("cgroup.procs"))
    });
    open_files(shim).len()
}

/// Whether a process ends within a time.
pub(crate) fn ends_within(pidfd: &OwnedFd, time: Duration) -> bool {
    let time = Timespec::try_from(time).unwrap();
    let mut ended = [PollFd::new(pidfd, PollFlags::IN)];
    poll(&mut ended, Some(&time)).unwrap() == 1
}

pub(crate) fn entry(line: &str) -> (String, bool, String) {
    let header = rubelet_logs::entry::parse_header(line.as_bytes()).unwrap();
    (
        header.stream.as_str().to_owned(),
        header.partial,
        line[header.content_at..].to_owned(),
    )
}

pub(crate) fn cgroups() -> CgroupFs {
    CgroupFs::detect(Path::new("/sys/fs/cgroup")).unwrap()
}

/// Kills what is in the cgroups of a test and removes them.
pub(crate) fn remove_cgroups(path: &CgroupPath) {
    let cgroups = cgroups();
    cgroups.kill(path).unwrap();
    wait_until("the end of a cgroup's processes", || {
        cgroups.processes(path).unwrap().is_empty()
    });
    for child in cgroups.children(path).unwrap() {
        let _ = cgroups.remove(&path.join(&child).unwrap());
    }
    let _ = cgroups.remove(path);
}

impl Drop for Shim {
    fn drop(&mut self) {
        let clean = !self.is_alive()
            || (self.call(Call::Shutdown).is_ok() && ends_within(&self.pidfd, PATIENCE));
        if !clean {
            let _ = rustix::process::pidfd_send_signal(&self.pidfd, rustix::process::Signal::KILL);
            ends_within(&self.pidfd, PATIENCE);
        }
        let _ = spawn::reap(self.pidfd.as_fd());
        remove_cgroups(&self.cgroup);
        unmount_below(self.path());
        assert!(
            clean || std::thread::panicking(),
            "the shim did not shut down"
        );
    }
}

/// Puts a program somewhere. Not by this process: a shim that another test forks at that moment
/// would hold the file open for writing, and nobody could execute it.
fn install(program: &Path, at: &Path) {
    let mut command = Command::new("install");
    command.arg("--mode=755").arg(program).arg(at);
    assert!(command.status().unwrap().success());
}

fn install_script(at: &Path, text: &str) {
    let draft = at.with_extension("draft");
    fs::write(&draft, text).unwrap();
    install(&draft, at);
}

/// A root file system with busybox: in `rootfs`, or in layers.
fn make_root(bundle: &Path, overlay: bool) -> Rootfs {
    let rootfs = bundle.join("rootfs");
    let layer = if overlay {
        bundle.join("layer")
    } else {
        rootfs.clone()
    };
    for directory in ["bin", "proc", "dev", "sys", "tmp"] {
        fs::create_dir_all(layer.join(directory)).unwrap();
    }
    install(Path::new("/usr/bin/busybox"), &layer.join("bin/busybox"));
    for applet in [
        "sh", "cat", "echo", "sleep", "kill", "true", "stty", "id", "seq", "wc", "head",
        "hostname", "tr",
    ] {
        symlink("busybox", layer.join("bin").join(applet)).unwrap();
    }
    if !overlay {
        return Rootfs::Ready;
    }
    let [base, upper, work] = ["base", "upper", "work"].map(|name| bundle.join(name));
    for directory in [&rootfs, &base, &upper, &work] {
        fs::create_dir_all(directory).unwrap();
    }
    fs::write(base.join("below"), "below\n").unwrap();
    Rootfs::Overlay {
        lower: vec![layer, base],
        upper: Some(upper),
        work: Some(work),
    }
}

fn spec(script: &str, cgroup: &CgroupPath, recipe: &Recipe) -> Spec {
    let mut kinds = vec![NamespaceKind::Mount, NamespaceKind::Ipc];
    if !recipe.host_pids {
        kinds.push(NamespaceKind::Pid);
    }
    kinds.retain(|kind| !recipe.joins.iter().any(|(joined, _)| joined == kind));
    let joined = recipe.joins.iter().map(|(kind, path)| Namespace {
        kind: *kind,
        path: Some(path.clone()),
    });
    let namespace = |kind| Namespace { kind, path: None };
    Spec {
        oci_version: "1.0.2".into(),
        process: process(recipe.tty, &["/bin/sh", "-c", script]),
        root: Root {
            path: "rootfs".into(),
            readonly: false,
        },
        mounts: vec![
            mount("/proc", "proc", &[]),
            mount("/dev", "tmpfs", &["nosuid", "mode=755", "size=65536k"]),
            mount(
                "/dev/pts",
                "devpts",
                &["newinstance", "ptmxmode=0666", "mode=0620"],
            ),
        ],
        linux: Linux {
            namespaces: kinds.into_iter().map(namespace).chain(joined).collect(),
            cgroups_path: Some(cgroup.as_str().to_owned()),
            ..Linux::default()
        },
        ..Spec::default()
    }
}

/// A process that executes something.
pub(crate) fn process(terminal: bool, args: &[&str]) -> Process {
    Process {
        terminal,
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        env: vec!["PATH=/bin".into()],
        cwd: "/".into(),
        ..Process::default()
    }
}

fn mount(destination: &str, kind: &str, options: &[&str]) -> Mount {
    Mount {
        destination: destination.into(),
        kind: kind.into(),
        source: kind.into(),
        options: options.iter().map(|&option| option.to_owned()).collect(),
        ..Mount::default()
    }
}
