//! The configuration of a container, seen from inside: command, environment, files, mounts, host
//! name.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use anyhow::Result;
use rubelet_cri::v1;
use rubelet_testbed::images;
use rubelet_testbed::wait;

use crate::subject::{Sandbox, Subject, TIMEOUT, exec};

fn mount(host: &std::path::Path, inside: &str) -> v1::Mount {
    v1::Mount {
        host_path: host.display().to_string(),
        container_path: inside.into(),
        ..Default::default()
    }
}

fn host_dir(sandbox: &Sandbox<'_>, name: &str) -> Result<PathBuf> {
    let scratch = sandbox.subject.runtime.scratch();
    scratch.subdir(&format!("host/{}/{name}", sandbox.name()))
}

#[test]
fn command_env_and_directory_default_to_the_images() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("program")?;
    let mut config = sandbox.script("given", "");
    config.command = vec!["sh".into(), "-c".into()];
    config.args = vec!["pwd; echo $PATH; echo $ONE-$TWO".into()];
    config.envs = [("ONE", "1"), ("TWO", "2 3")]
        .map(|(key, value)| v1::KeyValue {
            key: key.into(),
            value: value.into(),
        })
        .into();
    assert_eq!(sandbox.output_of(config.clone())?, "/\n/bin\n1-2 3\n");

    // A missing directory is created.
    config.metadata.as_mut().unwrap().name = "made".into();
    config.log_path = "made.log".into();
    config.working_dir = "/new/directory".into();
    config.envs.push(v1::KeyValue {
        key: "PATH".into(),
        value: "/bin:/more".into(),
    });
    assert_eq!(
        sandbox.output_of(config)?,
        "/new/directory\n/bin:/more\n1-2 3\n"
    );

    // No command: the image's own, a shell that ends at the end of its input.
    let mut config = sandbox.script("own", "");
    config.command = Vec::new();
    let id = sandbox.start(config)?;
    assert_eq!(sandbox.ended(&id)?.exit_code, 0);
    Ok(())
}

#[test]
fn the_root_file_system_is_removed_with_the_container() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("root")?;
    let first = "echo changed > /etc/passwd; rm /bin/wget; mkdir /left; cat /etc/passwd";
    assert_eq!(sandbox.output("first", first)?, "changed\n");
    let second = "ls -d /left /bin/wget 2>/dev/null; head -1 /etc/passwd";
    assert_eq!(
        sandbox.output("second", second)?,
        "/bin/wget\nroot:x:0:0:root:/root:/bin/sh\n"
    );
    Ok(())
}

#[test]
fn a_read_only_root_is_writable_in_mounts_only() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("readonly")?;
    let mut config = sandbox.script(
        "main",
        "touch /no; touch /data/yes && echo ok; touch /dev/shm/x && echo shm",
    );
    config.mounts = vec![mount(&host_dir(&sandbox, "data")?, "/data")];
    config.linux.get_or_insert_default().security_context =
        Some(v1::LinuxContainerSecurityContext {
            readonly_rootfs: true,
            ..Default::default()
        });
    assert_eq!(sandbox.output_of(config)?, "ok\nshm\n");
    let log = sandbox.log("main")?;
    assert!(
        log.iter()
            .any(|line| line.text.contains("Read-only file system")),
        "{log:#?}"
    );
    Ok(())
}

#[test]
fn directories_and_files_of_the_host_are_mounted() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("mounts")?;
    let (shared, guarded) = (
        host_dir(&sandbox, "shared")?,
        host_dir(&sandbox, "guarded")?,
    );
    std::fs::write(shared.join("note"), "from the host\n")?;
    std::fs::write(guarded.join("note"), "look, don't touch\n")?;
    let file = host_dir(&sandbox, "file")?.join("one");
    std::fs::write(&file, "a file\n")?;
    let script = "cat /shared/note /guarded/note /etc/one; echo back > /shared/back; \
                  echo no > /guarded/back; echo no > /etc/one; true";
    let mut config = sandbox.script("main", script);
    let read_only = |mut mount: v1::Mount| {
        mount.readonly = true;
        mount
    };
    config.mounts = vec![
        mount(&shared, "/shared"),
        read_only(mount(&guarded, "/guarded")),
        read_only(mount(&file, "/etc/one")),
    ];
    assert_eq!(
        sandbox.output_of(config)?,
        "from the host\nlook, don't touch\na file\n"
    );
    assert_eq!(std::fs::read_to_string(shared.join("back"))?, "back\n");
    assert!(!guarded.join("back").exists());
    assert_eq!(std::fs::read_to_string(&file)?, "a file\n");
    Ok(())
}

#[test]
fn a_mount_over_a_link_stays_inside_the_container() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("link")?;
    let data = host_dir(&sandbox, "data")?;
    std::fs::write(data.join("note"), "mounted\n")?;
    // Without a special image there is no link such as /var/run; an earlier mount provides the
    // link.
    let links = host_dir(&sandbox, "links")?;
    let outside = host_dir(&sandbox, "outside")?;
    std::os::unix::fs::symlink(&outside, links.join("out"))?;
    let mut config = sandbox.script("main", "cat /links/out/note");
    config.mounts = vec![mount(&links, "/links"), mount(&data, "/links/out")];
    let output = sandbox.output_of(config)?;
    assert_eq!(output, "mounted\n");
    assert_eq!(
        std::fs::read_dir(&outside)?.count(),
        0,
        "the host's directory is untouched"
    );
    Ok(())
}

#[test]
fn mount_propagation_is_as_requested() -> Result<()> {
    use rustix::mount::{
        MountFlags, MountPropagationFlags, mount as mount_fs, mount_bind, mount_change,
    };
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("late")?;
    let top = host_dir(&sandbox, "top")?;
    mount_bind(&top, &top)?;
    mount_change(&top, MountPropagationFlags::SHARED)?;
    std::fs::create_dir(top.join("sub"))?;
    let script = "echo ready; read line < /dev/stdin; sleep 1000";
    let mut config = sandbox.script("main", script);
    config.command[2] = "echo ready; exec sleep 1000".into();
    let mut follows = mount(&top, "/follows");
    follows.propagation = v1::MountPropagation::PropagationHostToContainer.into();
    let mut both = mount(&top, "/both");
    both.propagation = v1::MountPropagation::PropagationBidirectional.into();
    config.mounts = vec![mount(&top, "/apart"), follows, both];
    config.linux.get_or_insert_default().security_context =
        Some(v1::LinuxContainerSecurityContext {
            privileged: true,
            ..Default::default()
        });
    let mut pod = sandbox.config.clone();
    drop(sandbox);
    pod.linux.get_or_insert_default().security_context = Some(v1::LinuxSandboxSecurityContext {
        privileged: true,
        ..Default::default()
    });
    let sandbox = subject.sandbox_of(pod)?;
    let id = sandbox.start(config)?;
    sandbox.wait_log("main", "ready")?;
    mount_fs("none", top.join("sub"), "tmpfs", MountFlags::empty(), None)?;
    std::fs::write(top.join("sub/late"), "")?;
    let look = [
        "sh",
        "-c",
        "for d in apart follows both; do ls /$d/sub; echo .$d; done",
    ];
    let seen = subject.ask(exec(subject.client(), &id, &look, 10))?;
    assert_eq!(
        String::from_utf8_lossy(&seen.stdout),
        ".apart\nlate\n.follows\nlate\n.both\n"
    );
    let inner = [
        "sh",
        "-c",
        "mkdir /both/inner; mount -t tmpfs none /both/inner; touch /both/inner/x",
    ];
    subject.ask(exec(subject.client(), &id, &inner, 10))?;
    assert!(
        top.join("inner/x").exists(),
        "a mount inside appears on the host"
    );
    drop(sandbox);
    for path in ["inner", "sub", ""] {
        // The test bed also undoes it.
        let _ = rustix::mount::unmount(top.join(path), rustix::mount::UnmountFlags::DETACH);
    }
    Ok(())
}

#[test]
fn recursive_read_only_mounts_are_applied() -> Result<()> {
    use rustix::mount::{MountFlags, mount as mount_fs};
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("deep")?;
    let top = host_dir(&sandbox, "top")?;
    std::fs::create_dir(top.join("sub"))?;
    mount_fs("none", top.join("sub"), "tmpfs", MountFlags::empty(), None)?;
    let script = "touch /flat/x || echo flat; touch /flat/sub/x && echo below; \
                  touch /deep/sub/y || echo deep";
    let mut config = sandbox.script("main", script);
    let mut flat = mount(&top, "/flat");
    flat.readonly = true;
    let mut deep = mount(&top, "/deep");
    deep.readonly = true;
    deep.recursive_read_only = true;
    config.mounts = vec![flat, deep];
    let output = sandbox.output_of(config);
    rustix::mount::unmount(top.join("sub"), rustix::mount::UnmountFlags::DETACH)?;
    if subject.is_embedded() {
        assert_eq!(output?, "flat\nbelow\ndeep\n");
    }
    // Debian 12's runc is older than recursive read-only mounts, and containerd then refuses.
    Ok(())
}

#[test]
fn host_name_and_resolv_conf_are_those_of_the_pod() -> Result<()> {
    let subject = Subject::shared()?;
    let mut config = subject.sandbox_config("named")?;
    config.hostname = "a-host-name".into();
    config.dns_config = Some(v1::DnsConfig {
        servers: vec!["10.0.0.10".into()],
        searches: vec!["svc.cluster.local".into(), "cluster.local".into()],
        options: vec!["ndots:5".into()],
    });
    let sandbox = subject.sandbox_of(config)?;
    let output = sandbox.output("main", "hostname; cat /etc/hostname; cat /etc/resolv.conf")?;
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines[..2], ["a-host-name", "a-host-name"]);
    assert!(lines.contains(&"nameserver 10.0.0.10"), "{output}");
    assert!(
        lines.contains(&"search svc.cluster.local cluster.local"),
        "{output}"
    );
    assert!(lines.contains(&"options ndots:5"), "{output}");
    Ok(())
}

#[test]
fn containers_of_a_pod_share_dev_shm() -> Result<()> {
    let subject = Subject::shared()?;
    let (one, other) = (subject.sandbox("shm")?, subject.sandbox("shm")?);
    one.output(
        "writer",
        "echo shared > /dev/shm/note; df /dev/shm | tail -1 | wc -l",
    )?;
    assert_eq!(one.output("reader", "cat /dev/shm/note")?, "shared\n");
    assert_eq!(other.output("stranger", "ls /dev/shm")?, "");
    Ok(())
}

#[test]
fn a_file_of_the_kubelet_is_writable_for_its_user() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("termlog")?;
    let dir = host_dir(&sandbox, "log")?;
    let file = dir.join("termination-log");
    std::fs::write(&file, "")?;
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o666))?;
    let mut config = sandbox.script("main", "echo the end > /dev/termination-log");
    config.image = Some(v1::ImageSpec {
        image: images::NUMERIC_USER.into(),
        ..Default::default()
    });
    config.mounts = vec![mount(&file, "/dev/termination-log")];
    sandbox.output_of(config)?;
    assert_eq!(std::fs::read_to_string(&file)?, "the end\n");
    Ok(())
}

#[test]
fn devices_of_the_host_can_be_added() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("device")?;
    let script = "ls -l /dev/given | awk '{print $5,$6}'; dd if=/dev/given bs=1 count=1 2>/dev/null | wc -c; \
                  for d in null zero full random urandom tty; do [ -c /dev/$d ] || echo no $d; done; \
                  ls /dev/kmsg 2>/dev/null; ls -l /dev/fd /dev/stdout >/dev/null && echo links";
    let mut config = sandbox.script("main", script);
    config.devices = vec![v1::Device {
        container_path: "/dev/given".into(),
        host_path: "/dev/zero".into(),
        permissions: "r".into(),
    }];
    assert_eq!(sandbox.output_of(config)?, "1, 5\n1\nlinks\n");
    Ok(())
}

#[test]
fn a_created_container_runs_nothing_before_its_start() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("gate")?;
    let data = host_dir(&sandbox, "data")?;
    let mut config = sandbox.script("main", "echo ran > /data/ran; sleep 1000");
    config.mounts = vec![mount(&data, "/data")];
    let id = sandbox.create(config)?;
    assert_eq!(sandbox.output("meanwhile", "echo x")?, "x\n");
    assert!(!data.join("ran").exists());
    subject.ask(crate::subject::start(subject.client(), &id))?;
    wait::until("it runs", TIMEOUT, || {
        Ok(data.join("ran").exists().then_some(()))
    })
}
