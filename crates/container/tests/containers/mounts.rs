//! What a container sees as its files.

use std::fs;

use rubelet_oci::{Device, DeviceKind, LOWER_DIR, SUB_PATH};
use rustix::mount::{MountPropagationFlags, mount_change};

use crate::{
    Case,
    fixture::{ContainerFixture, bind, mount, script},
};

pub(crate) const CASES: &[Case] = &[
    ("mounts::default_devices", default_devices),
    ("mounts::devices_of_its_own", devices_of_its_own),
    ("mounts::bind_mounts", bind_mounts),
    ("mounts::missing_source", missing_source),
    ("mounts::file_on_directory", file_on_directory),
    ("mounts::read_only_root", read_only_root),
    (
        "mounts::own_directory_on_a_read_only_root",
        own_directory_on_a_read_only_root,
    ),
    ("mounts::recursive_read_only", recursive_read_only),
    (
        "mounts::masked_and_read_only_paths",
        masked_and_read_only_paths,
    ),
    ("mounts::own_cgroup", own_cgroup),
    ("mounts::layers", layers),
    ("mounts::images", images),
    ("mounts::parts_of_images", parts_of_images),
    ("mounts::host_is_untouched", host_is_untouched),
    ("mounts::propagation", propagation),
    ("mounts::sizes", sizes),
    ("mounts::long_paths", long_paths),
];

fn default_devices() {
    let place = ContainerFixture::new();
    let outcome = place
        .run(&script(
            "cd /dev; for d in null zero full random urandom tty; do stat -c '%n %a %t:%T' $d; done; \
             echo x > null; head -c 4 zero | wc -c; echo x > full; readlink ptmx; readlink stdin; \
             ls -d pts mqueue; echo 'n*'",
        ))
        .unwrap();
    assert_eq!(
        outcome.stdout,
        "null 666 1:3\nzero 666 1:5\nfull 666 1:7\nrandom 666 1:8\nurandom 666 1:9\ntty 666 5:0\n\
         4\npts/ptmx\n/proc/self/fd/0\nmqueue\npts\nn*\n",
        "{outcome:?}"
    );
    assert!(outcome.stderr.contains("No space left"), "{outcome:?}");
}

fn devices_of_its_own() {
    let place = ContainerFixture::new();
    let mut spec = script("stat -c '%n %F %a %t:%T %u:%g' /dev/net/tun /dev/null /odd");
    let device = |path: &str, major, minor| Device {
        path: path.into(),
        kind: DeviceKind::Char,
        major,
        minor,
        file_mode: Some(0o640),
        uid: Some(7),
        gid: Some(8),
    };
    spec.linux.devices = vec![
        device("/dev/net/tun", 10, 200),
        device("/dev/null", 1, 3),
        device("/odd", 1, 5),
    ];
    let outcome = place.run(&spec).unwrap();
    assert_eq!(
        outcome.stdout,
        "/dev/net/tun character special file 640 a:c8 7:8\n\
         /dev/null character special file 666 1:3 0:0\n\
         /odd character special file 640 1:5 7:8\n",
        "{outcome:?}"
    );
    spec.linux.devices = vec![device("/dev/../etc/x", 1, 3)];
    let error = place.run(&spec).unwrap_err();
    assert!(
        error.contains("/dev/../etc/x is not a valid device path"),
        "{error}"
    );
}

fn bind_mounts() {
    let place = ContainerFixture::new();
    let data = place.directory("data");
    fs::write(data.join("file"), "content\n").unwrap();
    let mut spec = script(
        "cat /data/file /etc/one; echo more > /data/new; echo no > /read/new; grep ' /data ' /proc/self/mountinfo",
    );
    spec.mounts.push(bind(&data, "/data", &["rw", "nosuid"]));
    spec.mounts.push(bind(&data, "/read", &["ro", "rprivate"]));
    spec.mounts
        .push(bind(&data.join("file"), "/etc/one", &["ro"]));
    let outcome = place.run(&spec).unwrap();
    assert!(
        outcome.stdout.starts_with("content\ncontent\n"),
        "{outcome:?}"
    );
    assert!(outcome.stdout.contains("rw,nosuid"), "{outcome:?}");
    assert!(
        outcome.stderr.contains("Read-only file system"),
        "{outcome:?}"
    );
    assert_eq!(fs::read_to_string(data.join("new")).unwrap(), "more\n");
}

fn missing_source() {
    let place = ContainerFixture::new();
    let mut spec = script("true");
    spec.mounts
        .push(bind("/no/such/source".as_ref(), "/data", &[]));
    let error = place.run(&spec).unwrap_err();
    assert_eq!(
        error,
        "error mounting \"/no/such/source\" to rootfs at \"/data\": no such file or directory"
    );
    spec.mounts.pop();
    spec.mounts.push(mount("/x", "nosuchfs", "none", &[]));
    let error = place.run(&spec).unwrap_err();
    assert!(
        error.contains("file system nosuchfs: no such device"),
        "{error}"
    );
    spec.mounts.pop();
    spec.mounts.push(mount("/x", "tmpfs", "none", &["sise=3"]));
    let error = place.run(&spec).unwrap_err();
    assert!(error.contains("option sise=3: invalid argument"), "{error}");
}

fn file_on_directory() {
    let place = ContainerFixture::new();
    let file = place.directory("data").join("file");
    fs::write(&file, "").unwrap();
    let mut spec = script("true");
    spec.mounts.push(bind(&file, "/etc", &[]));
    let error = place.run(&spec).unwrap_err();
    assert!(
        error.contains("are you trying to mount a directory onto a file (or vice-versa)?"),
        "{error}"
    );
}

fn read_only_root() {
    let place = ContainerFixture::new();
    let data = place.directory("data");
    let mut spec = script("touch /x; touch /data/x && touch /dev/x && echo rest");
    spec.root.readonly = true;
    spec.mounts.push(bind(&data, "/data", &[]));
    let outcome = place.run(&spec).unwrap();
    assert!(
        outcome.stderr.contains("/x: Read-only file system"),
        "{outcome:?}"
    );
    assert_eq!(outcome.stdout, "rest\n");
}

fn own_directory_on_a_read_only_root() {
    let place = ContainerFixture::new();
    let volume = place.directory("own");
    fs::create_dir(place.layer().join("volume")).unwrap();
    fs::write(place.layer().join("volume/of-the-image"), "").unwrap();
    let mut spec = script("touch /x; touch /volume/new && ls /volume; ls /missing/deep");
    spec.root.readonly = true;
    for path in ["/volume", "/missing/deep"] {
        let options = ["rw", rubelet_oci::NO_SYMLINKS];
        spec.mounts.push(bind(&volume, path, &options));
    }
    let outcome = place.run(&spec).unwrap();
    assert_eq!(outcome.stdout, "new\nnew\n", "{outcome:?}");
    assert!(
        outcome.stderr.contains("/x: Read-only file system"),
        "{outcome:?}"
    );
}

/// A tmpfs on a directory of the host, unmounted at the end.
struct Tmpfs(std::path::PathBuf);

impl Tmpfs {
    fn mount(path: std::path::PathBuf) -> Self {
        rubelet_host::mount::tmpfs(&path, Default::default()).unwrap();
        Self(path)
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        rubelet_host::mount::unmount(&self.0, true).unwrap();
    }
}

fn recursive_read_only() {
    let place = ContainerFixture::new();
    let data = place.directory("data");
    let below = Tmpfs::mount(place.directory("data/below"));
    let mut spec = script(
        "touch /a/x; touch /a/below/x && echo written; touch /b/below/y; touch /c/below/z; ls /c/below",
    );
    spec.mounts.push(bind(&data, "/a", &["ro"]));
    spec.mounts.push(bind(&data, "/b", &["rro"]));
    spec.mounts
        .push(mount("/c", "bind", data.to_str().unwrap(), &["bind"]));
    let outcome = place.run(&spec).unwrap();
    assert_eq!(outcome.stdout, "written\nz\n", "{outcome:?}");
    assert_eq!(
        outcome.stderr.matches("Read-only file system").count(),
        2,
        "{outcome:?}"
    );
    // Without `rbind` the directory below was the one that is hidden on the host.
    drop(below);
    assert!(data.join("below/z").exists());
}

fn masked_and_read_only_paths() {
    let place = ContainerFixture::new();
    let mut spec = script(
        "wc -c < /proc/keys; ls /proc/scsi /sys/firmware | wc -l; echo 1 > /proc/sys/vm/drop_caches; \
         cat /secret; ls -A /hidden; touch /fixed/x; touch /hidden/x",
    );
    fs::write(place.layer().join("secret"), "secret").unwrap();
    for directory in ["hidden/x", "fixed"] {
        fs::create_dir_all(place.layer().join(directory)).unwrap();
    }
    for path in ["/secret", "/hidden", "/missing"] {
        spec.linux.masked_paths.push(path.to_owned());
    }
    spec.linux.readonly_paths.push("/fixed".to_owned());
    let outcome = place.run(&spec).unwrap();
    assert!(!outcome.stdout.contains("secret"), "{outcome:?}");
    assert!(outcome.stdout.starts_with("0\n"), "{outcome:?}");
    assert_eq!(
        outcome.stderr.matches("Read-only file system").count(),
        3,
        "{outcome:?}"
    );
}

fn own_cgroup() {
    let place = ContainerFixture::new();
    let outcome = place
        .run(&script(
            "cat /proc/self/cgroup; mkdir /sys/fs/cgroup/x; ls /sys/fs/cgroup; \
             cat /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/memory/cgroup.procs",
        ))
        .unwrap();
    let own = outcome.stdout.lines().filter(|line| line.contains(':'));
    assert!(own.clone().count() > 0, "{outcome:?}");
    assert!(
        own.into_iter().all(|line| line.ends_with(":/")),
        "{outcome:?}"
    );
    assert!(
        outcome.stderr.contains("Read-only file system"),
        "{outcome:?}"
    );
    assert!(
        outcome.stdout.lines().any(|line| line == "1"),
        "{outcome:?}"
    );
}

fn layers() {
    let mut place = ContainerFixture::new();
    for (name, text) in [("two", "2"), ("three", "3")] {
        let layer = place.directory(name);
        fs::create_dir(layer.join("etc")).unwrap();
        fs::write(layer.join("etc/which"), text).unwrap();
        place.overlay.lower.insert(0, layer);
    }
    // Characters with a meaning among the options of a mount.
    let odd = place.directory("o,d:d\\");
    fs::write(odd.join("odd"), "odd").unwrap();
    place.overlay.lower.push(odd);
    let outcome = place
        .run(&script("cat /etc/which /odd; echo x > /etc/which"))
        .unwrap();
    assert_eq!(outcome.stdout, "3odd", "{outcome:?}");
    let upper = place.overlay.upper.clone().unwrap();
    assert_eq!(fs::read_to_string(upper.join("etc/which")).unwrap(), "x\n");
}

/// An image of two layers; the upper one takes a file away and has links that lead out.
fn image_of(place: &ContainerFixture) -> [String; 2] {
    let (upper, lower) = (place.directory("image,2"), place.directory("image:1"));
    for layer in [&upper, &lower] {
        fs::create_dir(layer.join("etc")).unwrap();
    }
    fs::write(lower.join("etc/old"), "old").unwrap();
    fs::write(lower.join("etc/both"), "lower").unwrap();
    fs::write(upper.join("etc/both"), "upper").unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    let kind = rustix::fs::FileType::CharacterDevice;
    let gone = upper.join("etc/old");
    rustix::fs::mknodat(rustix::fs::CWD, &gone, kind, mode, 0).unwrap();
    std::os::unix::fs::symlink("/etc", upper.join("out")).unwrap();
    std::os::unix::fs::symlink("../../../../../..", upper.join("up")).unwrap();
    [upper, lower].map(|layer| format!("{LOWER_DIR}{}", layer.display()))
}

fn images() {
    let place = ContainerFixture::new();
    let [upper, lower] = image_of(&place);
    let mut spec = script(
        "ls /image/etc /one/etc; cat /image/etc/both; echo x > /image/x; echo x > /one/x; grep -c ' /image ' /proc/self/mountinfo",
    );
    let layers: &[&str] = &["ro", "nodev", &upper, &lower];
    spec.mounts
        .push(mount("/image", "overlay", "tools:1", layers));
    // Overlayfs wants two at least.
    spec.mounts
        .push(mount("/one", "overlay", "tools:1", &["ro", &lower]));
    let outcome = place.run(&spec).unwrap();
    assert_eq!(
        outcome.stdout, "/image/etc:\nboth\n\n/one/etc:\nboth\nold\nupper1\n",
        "{outcome:?}"
    );
    assert_eq!(
        outcome.stderr.matches("Read-only file system").count(),
        2,
        "{outcome:?}"
    );
    let host = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!host.contains(place.dir.path().to_str().unwrap()), "{host}");
}

fn parts_of_images() {
    let place = ContainerFixture::new();
    let [upper, lower] = image_of(&place);
    let part = |to: &str, path: &str| {
        let path = format!("{SUB_PATH}{path}");
        mount(to, "overlay", "tools:1", &["ro", &upper, &lower, &path])
    };
    let mut spec = script("cat /part/both /file /out/both /up/etc/both; ls /part");
    spec.mounts.push(part("/part", "etc"));
    spec.mounts.push(part("/file", "etc/both"));
    // Links end inside of the image.
    spec.mounts.push(part("/out", "out"));
    spec.mounts.push(part("/up", "up"));
    let outcome = place.run(&spec).unwrap();
    assert_eq!(outcome.stdout, "upperupperupperupperboth\n", "{outcome:?}");
    for path in ["nothing", "etc/old", "etc/both/below"] {
        spec.mounts.truncate(spec.mounts.len() - 1);
        spec.mounts.push(part("/part2", path));
        let error = place.run(&spec).unwrap_err();
        assert_eq!(
            error,
            format!(
                "error mounting \"tools:1\" to rootfs at \"/part2\": the sub path {path:?} does not exist in the image"
            )
        );
    }
}

fn long_paths() {
    let mut place = ContainerFixture::new();
    let mut deep = place.dir.path().to_owned();
    for _ in 0..5 {
        deep.push("d".repeat(100));
    }
    fs::create_dir_all(&deep).unwrap();
    fs::create_dir(deep.join("bottom")).unwrap();
    fs::write(deep.join("bottom/deep"), "deep").unwrap();
    for number in 0..40 {
        let layer = deep.join(format!("layer-{number}"));
        fs::create_dir(&layer).unwrap();
        place.overlay.lower.push(layer);
    }
    place.overlay.lower.push(deep.join("bottom"));
    for (name, path) in [
        ("upper", &mut place.overlay.upper),
        ("work", &mut place.overlay.work),
    ] {
        let directory = deep.join(name);
        fs::create_dir(&directory).unwrap();
        *path = Some(directory);
    }
    let outcome = place.run(&script("cat /deep; echo x > /new")).unwrap();
    assert_eq!(outcome.stdout, "deep", "{outcome:?}");
    assert!(deep.join("upper/new").exists());
}

fn host_is_untouched() {
    let place = ContainerFixture::new();
    let before = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let namespaces = || {
        [
            "mnt",
            "net",
            "pid",
            "pid_for_children",
            "uts",
            "ipc",
            "cgroup",
            "user",
        ]
        .map(|name| fs::read_link(format!("/proc/self/ns/{name}")).unwrap())
    };
    let own = namespaces();
    let outcome = place.run(&script("cat /proc/self/mountinfo")).unwrap();
    let dir = place.dir.path().to_str().unwrap();
    // The layers' paths are in the overlay's options; nothing else of the host is visible.
    let mounts: Vec<&str> = outcome.stdout.lines().collect();
    assert!(
        mounts
            .iter()
            .all(|line| line.contains("overlay") || !line.contains(dir))
    );
    assert!(outcome.stdout.contains(" / / rw"), "{outcome:?}");
    assert_eq!(namespaces(), own);
    assert_eq!(fs::read_dir(place.at()).unwrap().count(), 0);
    // Others mount and unmount at the same time: only what is ours counts.
    let after = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!after.contains(dir) || before.contains(dir));
}

fn propagation() {
    let place = ContainerFixture::new();
    let data = place.directory("data");
    // On most machines everything is shared.
    rubelet_host::mount::bind(&data, &data).unwrap();
    mount_change(&data, MountPropagationFlags::PRIVATE).unwrap();
    let mut spec = script("true");
    spec.mounts.push(bind(&data, "/data", &["rshared"]));
    let error = place.run(&spec).unwrap_err();
    assert!(error.contains("but it is not a shared mount"), "{error}");
    spec.mounts.pop();
    spec.mounts.push(bind(&data, "/data", &["rslave"]));
    let error = place.run(&spec).unwrap_err();
    assert!(
        error.contains("but it is not a shared or slave mount"),
        "{error}"
    );

    let shared = MountPropagationFlags::SHARED | MountPropagationFlags::REC;
    mount_change(&data, shared).unwrap();
    fs::create_dir(data.join("in")).unwrap();
    fs::create_dir(data.join("out")).unwrap();
    let mut spec = script(
        "mount -t tmpfs none /shared/out && touch /shared/out/x && mkdir /slave/in/c && \
         mount -t tmpfs none /slave/in/c; echo; read go; ls /slave/in /private/in; umount /shared/out",
    );
    let names = spec.process.capabilities.as_mut().unwrap();
    for names in [
        &mut names.bounding,
        &mut names.effective,
        &mut names.permitted,
    ] {
        names.push("CAP_SYS_ADMIN".to_owned());
    }
    spec.mounts.push(bind(&data, "/shared", &["rshared"]));
    spec.mounts.push(bind(&data, "/slave", &["rslave"]));
    spec.mounts.push(bind(&data, "/private", &["rprivate"]));
    let mut running = place.start(&spec, Default::default());
    assert!(data.join("out/x").exists());
    assert!(!rubelet_host::mount::is_mount_point(&data.join("in/c")).unwrap());
    let later = Tmpfs::mount(data.join("in"));
    fs::write(data.join("in/later"), "").unwrap();
    crate::fixture::say(&mut running.ends, "go\n");
    let mut text = String::new();
    std::io::Read::read_to_string(&mut running.ends.stdout, &mut text).unwrap();
    drop(later);
    let _ = rubelet_host::mount::unmount(&data.join("out"), true);
    rubelet_host::mount::unmount(&data, true).unwrap();
    assert_eq!(text, "/private/in:\nc\n\n/slave/in:\nlater\n", "{text}");
}

fn sizes() {
    let place = ContainerFixture::new();
    let mut spec = script("dd if=/dev/zero of=/small/x bs=1k count=100; stat -c %a /small");
    spec.mounts.push(mount(
        "/small",
        "tmpfs",
        "tmpfs",
        &["size=8k", "mode=700", "noexec"],
    ));
    let outcome = place.run(&spec).unwrap();
    assert_eq!(outcome.stdout, "700\n", "{outcome:?}");
    assert!(outcome.stderr.contains("No space left"), "{outcome:?}");
}
