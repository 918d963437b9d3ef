//! Attacks from published advisories of OCI runtimes that need more than a hostile image: somebody
//! who changes a shared directory meanwhile, or a `/proc` or `/dev` that the container brought.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    process::{Child, Command},
};

use rubelet_container::{Console, Stdio};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::{
    Case,
    fixture::{ContainerFixture, bind, created, script},
};

pub(crate) const CASES: &[Case] = &[
    ("advisories::exchanged_directories", exchanged_directories),
    ("advisories::links_at_masked_paths", links_at_masked_paths),
    ("advisories::link_at_the_console", link_at_the_console),
    ("advisories::labels_by_a_false_proc", labels_by_a_false_proc),
    ("advisories::device_on_a_link", device_on_a_link),
];

/// What the exchanger works on.
const EXCHANGED: &str = "RUBELET_T_EXCHANGED";

/// Exchanges a directory and a link for ever. Not a test: [`exchanged_directories`] runs it.
pub(crate) fn exchanger() {
    let dir = std::env::var(EXCHANGED).unwrap();
    let (one, other) = (Path::new(&dir).join("race"), Path::new(&dir).join("link"));
    loop {
        renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
    }
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// CVE-2021-30465, CVE-2019-19921, CVE-2024-45310: a component of a destination becomes a link
/// between two looks at it. Neither a mount nor a new file or directory gets out.
fn exchanged_directories() {
    let place = ContainerFixture::new();
    let outside = place.directory("outside");
    let shared = place.directory("shared");
    let data = place.directory("data");
    fs::write(data.join("file"), "").unwrap();
    fs::create_dir(shared.join("race")).unwrap();
    symlink(&outside, shared.join("link")).unwrap();
    let exchanger = Command::new("/proc/self/exe")
        .args(["--case", "advisories::exchanger"])
        .env(EXCHANGED, &shared)
        .spawn()
        .unwrap();
    let _exchanger = Killed(exchanger);
    let mut went_well = 0;
    for _ in 0..25 {
        let mut spec = script("true");
        spec.process.cwd = "/shared/race/cwd".into();
        spec.mounts.push(bind(&shared, "/shared", &[]));
        spec.mounts.push(bind(&data, "/shared/race/deep/er", &[]));
        spec.mounts
            .push(bind(&data.join("file"), "/shared/race/file", &[]));
        let options = ["rw", rubelet_oci::NO_SYMLINKS];
        spec.mounts.push(bind(&data, "/shared/race/own", &options));
        // Some containers find a link where none may be, and don't start.
        went_well += u32::from(place.run(&spec).is_ok());
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "{went_well}");
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(place.dir.path().to_str().unwrap()));
}

/// CVE-2025-31133: what covers a masked path is the host's own, and a link there is covered, too.
fn links_at_masked_paths() {
    let place = ContainerFixture::new();
    let layer = place.layer();
    symlink("/proc/version", layer.join("masked")).unwrap();
    symlink("/nowhere", layer.join("dangling")).unwrap();
    fs::write(layer.join("secret"), "secret").unwrap();
    fs::create_dir(layer.join("secrets")).unwrap();
    fs::write(layer.join("secrets/one"), "secret").unwrap();
    // The container's own null device leads elsewhere.
    let dev = place.directory("dev");
    symlink("/proc/version", dev.join("null")).unwrap();
    let mut spec = script(
        "stat -L -c %t:%T /masked /proc/version /secret; cat /secret; ls -a /secrets; \
         echo x > /secrets/x || echo none",
    );
    spec.mounts
        .retain(|mount| !mount.destination.starts_with("/dev"));
    spec.mounts.push(bind(&dev, "/dev", &[]));
    for path in ["/masked", "/dangling", "/secret", "/secrets"] {
        spec.linux.masked_paths.push(path.to_owned());
    }
    let outcome = place.run(&spec).unwrap();
    let expected = "1:3\n1:3\n1:3\n.\n..\nnone\n";
    assert_eq!(outcome.stdout, expected, "{outcome:?}");
}

/// CVE-2025-52565: the terminal is mounted on a link, before paths of `/proc` are protected.
fn link_at_the_console() {
    let place = ContainerFixture::new();
    let dev = place.directory("dev");
    symlink("/proc/sys/kernel/core_pattern", dev.join("console")).unwrap();
    fs::create_dir(dev.join("pts")).unwrap();
    let mut spec = script("true");
    spec.process.terminal = true;
    spec.mounts.retain(|mount| {
        let to = mount.destination.as_path();
        to == Path::new("/dev/pts") || !to.starts_with("/dev")
    });
    spec.mounts.insert(0, bind(&dev, "/dev", &[]));
    let console = Stdio::Console(Console {
        height: 20,
        width: 30,
    });
    let mut launching = place
        .launch(&spec, console, Default::default(), None)
        .unwrap();
    let error = created(&mut launching.reports).unwrap_err();
    assert!(error.contains("/dev/console"), "{error}");
    assert!(dev.join("console").is_symlink());
}

/// CVE-2025-52881, CVE-2019-16884, CVE-2023-28642: a false `/proc` catches what is written there for
/// the kernel, and the container runs without its profile.
fn labels_by_a_false_proc() {
    let place = ContainerFixture::new();
    let proc = place.directory("false-proc");
    let files = ["thread-self/attr/apparmor/exec", "thread-self/attr/exec"];
    for file in files {
        let file = proc.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "").unwrap();
    }
    let mut spec = script("echo ran");
    spec.process.apparmor_profile = "not-loaded-here".to_owned();
    spec.mounts
        .retain(|mount| !mount.destination.starts_with("/proc"));
    spec.linux.masked_paths.clear();
    spec.linux.readonly_paths.clear();
    spec.mounts.push(bind(&proc, "/proc", &[]));
    let outcome = place.run(&spec);
    assert!(
        outcome
            .as_ref()
            .is_err_and(|error| error.contains("not-loaded-here")),
        "{outcome:?}"
    );
    for file in files {
        assert_eq!(fs::read_to_string(proc.join(file)).unwrap(), "", "{file}");
    }
}

/// A device outside of `/dev`, where somebody else has put a link: its mode is not that of a file
/// behind the link.
fn device_on_a_link() {
    let place = ContainerFixture::new();
    let shared = place.directory("shared");
    fs::write(shared.join("victim"), "").unwrap();
    symlink("/shared/victim", shared.join("node")).unwrap();
    let before = fs::metadata(shared.join("victim")).unwrap();
    let mut spec = script("true");
    spec.mounts.push(bind(&shared, "/shared", &[]));
    for name in ["node", "fresh"] {
        spec.linux.devices.push(rubelet_oci::Device {
            path: format!("/shared/{name}").into(),
            kind: rubelet_oci::DeviceKind::Char,
            major: 1,
            minor: 3,
            file_mode: Some(0o666),
            uid: None,
            gid: None,
        });
    }
    let _ = place.run(&spec);
    let after = fs::metadata(shared.join("victim")).unwrap();
    assert_eq!(before.permissions(), after.permissions());
    assert!(shared.join("node").is_symlink());
}
