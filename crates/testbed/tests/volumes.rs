//! Volumes: their content in containers, their owners, and their paths on the host.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use rubelet_testbed::Node;
use rubelet_testbed::cleanup::{mounts, processes};
use rubelet_testbed::command::stdout_of;
use rubelet_testbed::manifest::{pod, shell, waiting, with};
use rubelet_testbed::node::TIMEOUT;
use rubelet_testbed::status::{container, is_ready, restarts, waits_for};
use serde_json::{Value, json};

/// A container with volumes mounted, each at the path of its name: `data` on `/data`.
fn mounting(container: Value, volumes: &[&str]) -> Value {
    let mount = |name: &&str| json!({ "name": name, "mountPath": format!("/{name}") });
    let mounts: Vec<Value> = volumes.iter().map(mount).collect();
    with(container, &json!({ "volumeMounts": mounts }))
}

#[test]
fn an_empty_dir_lives_as_long_as_its_pod() -> Result<()> {
    let node = Node::shared()?;
    let both = ["disk", "memory"];
    let spec = json!({
        "containers": [mounting(waiting("one"), &both), mounting(waiting("two"), &both)],
        "volumes": [
            { "name": "disk", "emptyDir": {} },
            { "name": "memory", "emptyDir": { "medium": "Memory", "sizeLimit": "4Mi" } },
        ],
    });
    node.apply(&pod("empty-dir", &spec))?;
    node.wait_ready("empty-dir")?;
    let sh = |name: &str, script: &str| node.exec("empty-dir", name, &["sh", "-c", script]);
    let mounted = |path: &str| sh("one", &format!("grep ' {path} ' /proc/mounts"));

    assert_eq!(
        sh("one", "ls -A /disk /memory | grep -v :")?.trim(),
        "",
        "they begin empty"
    );
    let memory = mounted("/memory")?;
    assert!(memory.starts_with("tmpfs "), "{memory}");
    assert!(memory.contains("size=4096k"), "{memory}");
    // No file system of its own: that of the agent's directory.
    let of_root = fs::metadata(node.agent().root_dir())?.dev().to_string();
    assert_eq!(sh("one", "stat -c %d /disk")?.trim(), of_root);
    assert_ne!(sh("one", "stat -c %d /memory")?.trim(), of_root);
    sh("one", "head -c 3145728 /dev/zero > /memory/fits")?;
    let full = sh("one", "dd if=/dev/zero of=/memory/more bs=64k count=32").unwrap_err();
    assert!(full.to_string().contains("No space left"), "{full:#}");
    sh("one", "rm /memory/*")?;

    sh("one", "echo kept > /disk/file; echo kept > /memory/file")?;
    assert_eq!(
        sh("two", "cat /disk/file /memory/file")?,
        "kept\nkept\n",
        "both see it"
    );
    let on_disk = node
        .pod_dir("empty-dir")?
        .join("volumes/kubernetes.io~empty-dir/disk");
    assert_eq!(fs::read_to_string(on_disk.join("file"))?, "kept\n");
    assert_eq!(
        fs::metadata(&on_disk)?.mode() & 0o7777,
        0o777,
        "open to every user"
    );

    processes::kill(node.truth().pid(&node.running("empty-dir", "one")?.id)?)?;
    node.wait("empty-dir", "has its container again", |pod| {
        is_ready(pod) && restarts(pod, "one") == 1
    })?;
    assert_eq!(
        sh("one", "cat /disk/file /memory/file")?,
        "kept\nkept\n",
        "a restart keeps it"
    );

    let dir = node.pod_dir("empty-dir")?;
    assert_eq!(
        mounts::below(&dir)?.len(),
        1,
        "the volume in memory is mounted"
    );
    node.remove("empty-dir")?;
    node.wait_gone("empty-dir")?;
    assert!(!dir.exists(), "the volumes go with the pod");
    assert_eq!(mounts::below(&dir)?.len(), 0);
    Ok(())
}

#[test]
fn a_host_path_of_the_right_type_is_mounted() -> Result<()> {
    let node = Node::shared()?;
    let dir = node.host_dir("good")?;
    let at = |name: &str| dir.join(name);
    fs::create_dir(at("there"))?;
    fs::write(at("there/inside"), "from the host")?;
    fs::write(at("file"), "from the host")?;
    let _listener = UnixListener::bind(at("socket"))?;
    stdout_of(
        Command::new("mknod")
            .arg(at("block"))
            .args(["b", "7", "250"]),
    )?;
    let volumes = [
        ("untyped", at("there"), ""),
        ("absent", at("made-by-runtime"), ""),
        ("directory", at("there"), "Directory"),
        ("newdirectory", at("new/directory"), "DirectoryOrCreate"),
        ("file", at("file"), "File"),
        ("newfile", at("newfile"), "FileOrCreate"),
        ("socket", at("socket"), "Socket"),
        ("char", Path::new("/dev/null").to_owned(), "CharDevice"),
        ("block", at("block"), "BlockDevice"),
    ];
    let names: Vec<&str> = volumes.iter().map(|(name, _, _)| *name).collect();
    let script = "cat /untyped/inside /directory/inside /file; echo; \
                  for name in absent newdirectory newfile socket char block; do \
                  stat -c '%n %F' /$name; done; echo from the pod > /newdirectory/made";
    let spec = json!({
        "restartPolicy": "Never",
        "containers": [mounting(shell("main", script), &names)],
        "volumes": volumes.map(|(name, path, kind)| json!({
            "name": name, "hostPath": { "path": path, "type": kind },
        })),
    });
    assert_eq!(
        node.output(&pod("host-path", &spec))?,
        "from the hostfrom the hostfrom the host\n\
         /absent directory\n\
         /newdirectory directory\n\
         /newfile regular empty file\n\
         /socket socket\n\
         /char character special file\n\
         /block block special file\n"
    );
    assert_eq!(
        fs::read_to_string(at("new/directory/made"))?,
        "from the pod\n"
    );
    let mode = |name: &str| fs::metadata(at(name)).map(|found| found.mode() & 0o7777);
    assert_eq!((mode("new/directory")?, mode("newfile")?), (0o755, 0o644));
    node.remove("host-path")?;
    node.wait_gone("host-path")?;
    assert!(at("new/directory/made").exists(), "the host's files stay");
    Ok(())
}

#[test]
fn a_host_path_of_another_type_keeps_the_pod_waiting() -> Result<()> {
    let node = Node::shared()?;
    let dir = node.host_dir("bad")?;
    let at = |name: &str| dir.join(name);
    fs::create_dir(at("directory"))?;
    fs::write(at("file"), "")?;
    let cases = [
        ("not-there", at("missing"), "Directory", "directory"),
        ("no-file", at("missing-file"), "File", "file"),
        ("a-file", at("file"), "DirectoryOrCreate", "directory"),
        ("a-directory", at("directory"), "FileOrCreate", "file"),
        ("no-socket", at("file"), "Socket", "socket file"),
        ("no-char", at("file"), "CharDevice", "character device"),
        (
            "no-block",
            "/dev/null".into(),
            "BlockDevice",
            "block device",
        ),
    ];
    for (name, path, kind, _) in &cases {
        let spec = json!({
            "containers": [mounting(waiting("main"), &["v"])],
            "volumes": [{ "name": "v", "hostPath": { "path": path, "type": kind } }],
        });
        node.apply(&pod(name, &spec))?;
    }
    for (name, path, _, kind) in &cases {
        let message = node.wait_event(name, "FailedMount", "hostPath")?;
        assert_eq!(
            message,
            format!(
                "MountVolume.SetUp failed for volume \"v\" : hostPath type check failed: {} is \
                 not a {kind}",
                path.display()
            )
        );
        let seen = node.wait(name, "is shown", |pod| !pod.is_null())?;
        assert_eq!(seen["status"]["phase"], "Pending", "{name}");
        assert_eq!(waits_for(&seen, "main"), "ContainerCreating", "{name}");
        assert_eq!(node.containers(name)?, [], "{name}");
    }
    fs::create_dir(at("missing"))?;
    fs::write(at("missing-file"), "")?;
    for name in ["not-there", "no-file"] {
        node.wait_ready(name)?;
    }
    for (name, ..) in &cases {
        node.remove(name)?;
    }
    Ok(())
}

#[test]
fn a_sub_path_mounts_only_a_part_of_its_volume() -> Result<()> {
    let node = Node::shared()?;
    let prepare = "mkdir -p /data/directory; echo inside > /data/directory/file; \
                   ln -s directory /data/link; ln -s /directory /data/rooted; \
                   ln -s /etc /data/escape; ln -s ../../../../../../../../etc /data/climb";
    let parts = [
        ("/directory", "directory", false),
        ("/file", "directory/file", false),
        ("/link", "link", false),
        ("/rooted", "rooted", false),
        ("/created", "new/directory", false),
        ("/guarded", "directory", true),
    ];
    let mounts = parts.map(|(path, part, read_only)| {
        json!({ "name": "data", "mountPath": path, "subPath": part, "readOnly": read_only })
    });
    let expression = json!([
        { "name": "data", "mountPath": "/expression", "subPathExpr": "of/$(POD)-$(KIND)" },
        { "name": "data", "mountPath": "/data" },
    ]);
    let all = [
        mounts.to_vec(),
        expression.as_array().cloned().unwrap_or_default(),
    ]
    .concat();
    let script = "cat /directory/file /file /link/file /rooted/file /guarded/file; \
                  echo x > /created/x; echo x > /expression/x; echo x > /guarded/x; \
                  cd /data; find . -name x | sort; ls /data/new";
    let main = with(
        shell("main", &format!("exec 2>&1; {script}")),
        &json!({
            "volumeMounts": all,
            "env": [
                { "name": "POD", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } },
                { "name": "KIND", "value": "part" },
            ],
        }),
    );
    let spec = json!({
        "restartPolicy": "Never",
        "initContainers": [mounting(shell("prepare", prepare), &["data"])],
        "containers": [main],
        "volumes": [{ "name": "data", "emptyDir": {} }],
    });
    assert_eq!(
        node.output(&pod("sub-path", &spec))?,
        "inside\ninside\ninside\ninside\ninside\n\
         sh: can't create /guarded/x: Read-only file system\n\
         ./new/directory/x\n\
         ./of/sub-path-testnode-part/x\n\
         directory\n"
    );

    for name in ["escape", "climb"] {
        let mount = json!({ "name": "data", "mountPath": "/stolen", "subPath": name });
        let spec = json!({
            "initContainers": [mounting(shell("prepare", prepare), &["data"])],
            "containers": [with(waiting("main"), &json!({ "volumeMounts": [mount] }))],
            "volumes": [{ "name": "data", "emptyDir": {} }],
        });
        node.apply(&pod(name, &spec))?;
    }
    for name in ["escape", "climb"] {
        let seen = node.wait(name, "is refused", |pod| {
            waits_for(pod, "main") == "CreateContainerConfigError"
        })?;
        let message = &container(&seen, "main")["state"]["waiting"]["message"];
        let message = message.as_str().unwrap_or_default();
        let start = format!("failed to prepare subPath `{name}` of volume data");
        assert!(message.starts_with(&start), "{message}");
        node.remove(name)?;
    }
    Ok(())
}

#[test]
fn fs_group_and_read_only_mounts_are_applied() -> Result<()> {
    let node = Node::shared()?;
    let host = node.host_dir("group")?;
    let before = fs::metadata(&host)?;
    let script = "exec 2>&1; stat -c '%n %a %g' /disk /memory; touch /disk/new /memory/new; \
                  stat -c '%n %u %g' /disk/new /memory/new; touch /guarded/x; touch /host/x";
    let main = with(
        mounting(shell("main", script), &["disk", "memory", "host"]),
        &json!({ "securityContext": { "runAsUser": 1000, "runAsGroup": 1000 } }),
    );
    let mut spec = json!({
        "restartPolicy": "OnFailure",
        "securityContext": { "fsGroup": 2000 },
        "containers": [main],
        "volumes": [
            { "name": "disk", "emptyDir": {} },
            { "name": "memory", "emptyDir": { "medium": "Memory" } },
            { "name": "host", "hostPath": { "path": host } },
        ],
    });
    let guarded = json!({ "name": "disk", "mountPath": "/guarded", "readOnly": true });
    if let Some(mounts) = spec["containers"][0]["volumeMounts"].as_array_mut() {
        mounts.push(guarded);
    }
    spec["containers"][0]["command"][2] = json!(format!("{script}; true"));
    assert_eq!(
        node.output(&pod("fs-group", &spec))?,
        "/disk 2777 2000\n\
         /memory 3777 2000\n\
         /disk/new 1000 2000\n\
         /memory/new 1000 2000\n\
         touch: /guarded/x: Read-only file system\n\
         touch: /host/x: Permission denied\n"
    );
    let after = fs::metadata(&host)?;
    assert_eq!(
        (after.gid(), after.mode()),
        (before.gid(), before.mode()),
        "a hostPath keeps its group"
    );
    Ok(())
}

#[test]
fn the_pod_directory_has_the_kubelets_layout() -> Result<()> {
    let node = Node::shared()?;
    let one = with(
        waiting("one"),
        &json!({ "volumeMounts": [
            { "name": "memory", "mountPath": "/memory" },
            { "name": "disk", "mountPath": "/part", "subPath": "part" },
        ]}),
    );
    let spec = json!({
        "initContainers": [shell("before", "true")],
        "containers": [one, waiting("two")],
        "volumes": [
            { "name": "disk", "emptyDir": {} },
            { "name": "memory", "emptyDir": { "medium": "Memory" } },
        ],
    });
    node.apply(&pod("layout", &spec))?;
    node.wait_ready("layout")?;
    let dir = node.pod_dir("layout")?;
    let mut found = BTreeSet::new();
    collect(&dir, "", &mut found)?;
    let expected = [
        "containers",
        "containers/before",
        "containers/before/XXXXXXXX",
        "containers/one",
        "containers/one/XXXXXXXX",
        "containers/two",
        "containers/two/XXXXXXXX",
        "etc-hosts",
        "plugins",
        "plugins/kubernetes.io~empty-dir",
        "plugins/kubernetes.io~empty-dir/disk",
        "plugins/kubernetes.io~empty-dir/disk/ready",
        "plugins/kubernetes.io~empty-dir/memory",
        "plugins/kubernetes.io~empty-dir/memory/ready",
        "volume-subpaths",
        "volume-subpaths/disk",
        "volume-subpaths/disk/one",
        "volume-subpaths/disk/one/1",
        "volumes",
        "volumes/kubernetes.io~empty-dir",
        "volumes/kubernetes.io~empty-dir/disk",
        "volumes/kubernetes.io~empty-dir/disk/part",
        "volumes/kubernetes.io~empty-dir/memory",
    ];
    assert_eq!(found, expected.map(str::to_owned).into());
    let mode = |path: &str| fs::metadata(dir.join(path)).map(|found| found.mode() & 0o7777);
    assert_eq!(mode("")?, 0o750, "the pod's directory is private");
    assert_eq!(mode("etc-hosts")?, 0o644);
    let mounted: BTreeSet<_> = mounts::below(&dir)?.into_iter().collect();
    let expected = [
        "volume-subpaths/disk/one/1",
        "volumes/kubernetes.io~empty-dir/memory",
    ];
    assert_eq!(mounted, expected.map(|path| dir.join(path)).into());

    node.remove("layout")?;
    node.wait_gone("layout")?;
    node.agent()
        .wait_for("the directory is gone", TIMEOUT, |_| {
            Ok((!dir.exists()).then_some(()))
        })
}

/// Paths below `dir`, with the random name of each termination message replaced.
fn collect(dir: &Path, prefix: &str, found: &mut BTreeSet<String>) -> Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let mut name = entry.file_name().to_string_lossy().into_owned();
        let is_hex = |name: &str| name.bytes().all(|byte| byte.is_ascii_hexdigit());
        if prefix.starts_with("containers/") && name.len() == 8 && is_hex(&name) {
            name = "XXXXXXXX".to_owned();
        }
        let path = format!("{prefix}{name}");
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{path}/"), found)?;
        }
        found.insert(path);
    }
    Ok(())
}
