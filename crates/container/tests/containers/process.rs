//! The process itself: what it is, what it may do, and why it can't be started.

use rubelet_oci::{Rlimit, User};

use crate::{
    Case,
    fixture::{ContainerFixture, script, spec},
};

pub(crate) const CASES: &[Case] = &[
    ("process::says_hello_and_ends", says_hello_and_ends),
    ("process::missing_program", missing_program),
    (
        "process::program_of_another_machine",
        program_of_another_machine,
    ),
    ("process::user_and_groups", user_and_groups),
    ("process::capabilities", capabilities),
    ("process::no_new_privileges", no_new_privileges),
    ("process::working_directory", working_directory),
    ("process::limits", limits),
    ("process::oom_score", oom_score),
    ("process::opens_its_own_output", opens_its_own_output),
    ("process::seccomp", seccomp),
    ("process::inherits_nothing", inherits_nothing),
    ("process::unopened_barrier", unopened_barrier),
];

fn says_hello_and_ends() {
    let place = ContainerFixture::new();
    let outcome = place
        .run(&script("echo hello; echo oops >&2; echo $$; exit 7"))
        .unwrap();
    assert_eq!(outcome.stdout, "hello\n1\n", "{outcome:?}");
    assert_eq!(outcome.stderr, "oops\n");
    assert_eq!(outcome.code, Some(7));
}

fn missing_program() {
    let place = ContainerFixture::new();
    let error = place.run(&spec(&["foo"])).unwrap_err();
    assert!(
        error.contains("exec: \"foo\": executable file not found in $PATH"),
        "{error}"
    );
    let error = place.run(&spec(&["/bin/foo"])).unwrap_err();
    assert!(
        error.contains("exec: \"/bin/foo\": stat /bin/foo: no such file or directory"),
        "{error}"
    );
    let error = place.run(&spec(&["/etc/passwd"])).unwrap_err();
    assert!(
        error.contains("exec: \"/etc/passwd\": permission denied"),
        "{error}"
    );
}

fn program_of_another_machine() {
    use std::os::unix::fs::PermissionsExt;
    let place = ContainerFixture::new();
    let file = place.layer().join("bin/strange");
    std::fs::write(&file, b"\x7fELFnothing").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    let error = place.run(&spec(&["strange"])).unwrap_err();
    assert!(
        error.contains("exec /bin/strange: exec format error"),
        "{error}"
    );
}

fn user_and_groups() {
    let place = ContainerFixture::new();
    let mut spec = script("id -u; id -g; grep Groups /proc/self/status; umask; touch /nope");
    spec.process.user = User {
        uid: 1000,
        gid: 1001,
        umask: Some(0o027),
        additional_gids: vec![2000, 3000],
    };
    let outcome = place.run(&spec).unwrap();
    let words: Vec<&str> = outcome.stdout.split_whitespace().collect();
    assert_eq!(words, ["1000", "1001", "Groups:", "2000", "3000", "0027"]);
    assert!(outcome.stderr.contains("Permission denied"), "{outcome:?}");
}

fn sets(stdout: &str) -> Vec<(String, u64)> {
    let lines = stdout.lines().filter_map(|line| line.split_once(":\t"));
    lines
        .map(|(name, bits)| (name.to_owned(), u64::from_str_radix(bits, 16).unwrap()))
        .collect()
}

fn capabilities() {
    let place = ContainerFixture::new();
    let mut spec = script("grep Cap /proc/self/status");
    let outcome = place.run(&spec).unwrap();
    let all = 0xa804_25fb;
    let sets = sets(&outcome.stdout);
    let wanted = [
        ("CapInh", 0),
        ("CapPrm", all),
        ("CapEff", all),
        ("CapBnd", all),
        ("CapAmb", 0),
    ];
    assert_eq!(
        sets,
        wanted.map(|(name, bits)| (name.to_owned(), bits)),
        "{outcome:?}"
    );

    // Another user has what is ambient, and nothing else.
    let names = spec.process.capabilities.as_mut().unwrap();
    names.inheritable = vec!["CAP_NET_BIND_SERVICE".to_owned()];
    names.ambient = vec!["CAP_NET_BIND_SERVICE".to_owned()];
    spec.process.user.uid = 1000;
    let outcome = place.run(&spec).unwrap();
    let sets = self::sets(&outcome.stdout);
    assert_eq!(sets[2], ("CapEff".to_owned(), 1 << 10), "{outcome:?}");

    // What this process lacks itself can't be given, and the error says so.
    let names = spec.process.capabilities.as_mut().unwrap();
    names.bounding.push("CAP_FLY".to_owned());
    let error = place.run(&spec).unwrap_err();
    assert!(error.contains("unknown capability \"CAP_FLY\""), "{error}");
}

fn no_new_privileges() {
    let place = ContainerFixture::new();
    let mut spec = script("grep NoNewPrivs /proc/self/status");
    let outcome = place.run(&spec).unwrap();
    assert_eq!(outcome.stdout, "NoNewPrivs:\t0\n");
    spec.process.no_new_privileges = true;
    let outcome = place.run(&spec).unwrap();
    assert_eq!(outcome.stdout, "NoNewPrivs:\t1\n");
}

fn working_directory() {
    let place = ContainerFixture::new();
    let mut spec = script("pwd");
    spec.process.cwd = "/a/b/c".into();
    let outcome = place.run(&spec).unwrap();
    assert_eq!(outcome.stdout, "/a/b/c\n");
    spec.process.cwd = "/etc/passwd".into();
    let error = place.run(&spec).unwrap_err();
    assert!(
        error.contains("chdir to cwd (\"/etc/passwd\") set in config.json failed: not a directory"),
        "{error}"
    );
}

fn limits() {
    let place = ContainerFixture::new();
    let mut spec = script("ulimit -n; ulimit -Hn");
    let limit = |soft, hard| Rlimit {
        kind: "RLIMIT_NOFILE".to_owned(),
        soft,
        hard,
    };
    spec.process.rlimits = vec![limit(100, 200)];
    let outcome = place.run(&spec).unwrap();
    assert_eq!(outcome.stdout, "100\n200\n");
    // Nobody may raise it above this on a machine without CAP_SYS_RESOURCE; that is no failure.
    spec.process.rlimits = vec![limit(1 << 29, 1 << 29)];
    let outcome = place.run(&spec).unwrap();
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let told = outcome
        .warnings
        .iter()
        .any(|one| one.contains("cannot raise RLIMIT_NOFILE above"));
    assert_eq!(
        told,
        !outcome.stdout.contains(&(1 << 29).to_string()),
        "{outcome:?}"
    );
    spec.process.rlimits = vec![Rlimit {
        kind: "RLIMIT_SLEEP".to_owned(),
        ..Rlimit::default()
    }];
    let error = place.run(&spec).unwrap_err();
    assert!(
        error.contains("unknown resource limit \"RLIMIT_SLEEP\""),
        "{error}"
    );
}

fn oom_score() {
    let place = ContainerFixture::new();
    let mut spec = script("cat /proc/self/oom_score_adj");
    spec.process.oom_score_adj = Some(777);
    let outcome = place.run(&spec).unwrap();
    assert_eq!(outcome.stdout, "777\n", "{outcome:?}");
}

fn opens_its_own_output() {
    let place = ContainerFixture::new();
    let mut spec = script("echo out > /dev/stdout; echo err > /proc/self/fd/2");
    spec.process.user.uid = 1000;
    let outcome = place.run(&spec).unwrap();
    assert_eq!(
        (outcome.stdout.as_str(), outcome.stderr.as_str()),
        ("out\n", "err\n")
    );
}

/// A filter that lets everything through but `mkdir` (EPERM), on this architecture.
fn filter() -> Vec<u8> {
    let instruction = |code: u16, jt: u8, jf: u8, k: u32| {
        let mut bytes = code.to_ne_bytes().to_vec();
        bytes.extend([jt, jf]);
        bytes.extend(k.to_ne_bytes());
        bytes
    };
    let mkdir = u32::try_from(libc::SYS_mkdir).unwrap();
    [
        instruction(0x20, 0, 0, 0),
        instruction(0x15, 0, 1, mkdir),
        instruction(0x06, 0, 0, 0x0005_0001),
        instruction(0x06, 0, 0, 0x7fff_0000),
    ]
    .concat()
}

fn seccomp() {
    let place = ContainerFixture::new();
    let mut spec = script("grep Seccomp: /proc/self/status; mkdir /x");
    for (uid, no_new_privileges) in [(0, true), (0, false), (1000, true), (1000, false)] {
        spec.process.user.uid = uid;
        spec.process.no_new_privileges = no_new_privileges;
        let outcome = place
            .run_in(&spec, Default::default(), Some(&filter()))
            .unwrap();
        assert_eq!(outcome.stdout, "Seccomp:\t2\n");
        assert!(
            outcome.stderr.contains("Operation not permitted"),
            "{outcome:?}"
        );
    }
    let error = place
        .run_in(&spec, Default::default(), Some(&[1, 2, 3]))
        .unwrap_err();
    assert!(
        error.contains("cannot filter system calls (seccomp): invalid"),
        "{error}"
    );
}

fn inherits_nothing() {
    let place = ContainerFixture::new();
    // Open without close-on-exec, as a careless library would.
    let leaked =
        rustix::fs::open("/", rustix::fs::OFlags::PATH, rustix::fs::Mode::empty()).unwrap();
    let outcome = place.run(&spec(&["ls", "/proc/self/fd"])).unwrap();
    drop(leaked);
    let words: Vec<&str> = outcome.stdout.split_whitespace().collect();
    // The fourth is the directory that `ls` reads.
    assert_eq!(words, ["0", "1", "2", "3"], "{outcome:?}");
    let outcome = place
        .run(&spec(&["grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"]))
        .unwrap();
    let words: Vec<&str> = outcome.stdout.split_whitespace().collect();
    assert_eq!(
        words,
        ["SigBlk:", "0000000000000000", "SigIgn:", "0000000000000000"]
    );
}

fn unopened_barrier() {
    use crate::fixture::{created, pipes};
    use std::os::fd::AsFd;
    let place = ContainerFixture::new();
    let (stdio, mut ends) = pipes();
    let mut launching = place
        .launch(&script("echo never"), stdio, Default::default(), None)
        .unwrap();
    created(&mut launching.reports).unwrap();
    drop(launching.barrier);
    let mut text = String::new();
    std::io::Read::read_to_string(&mut ends.stdout, &mut text).unwrap();
    assert_eq!(text, "");
    let ended = rustix::process::waitid(
        rustix::process::WaitId::PidFd(launching.pidfd.as_fd()),
        rustix::process::WaitIdOptions::EXITED,
    );
    assert_eq!(ended.unwrap().unwrap().exit_status(), Some(1));
}
