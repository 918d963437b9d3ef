//! Volumes that an image declares, with each runtime handler: directories of the runtime, filled
//! from the image. The content at their paths in the image is untrusted.

use anyhow::Result;
use rubelet_cri::v1;
use rubelet_testbed::images;

use crate::subject::{Sandbox, Subject, refused};

/// All handlers of the embedded runtime.
const HANDLERS: [&str; 3] = ["", "runc", "crun"];

/// The handlers that work on this machine: for containerd only its own, and crun runs nothing if
/// controllers of cgroup version 1 are mounted beside the unified hierarchy.
fn handlers(subject: &Subject) -> &'static [&'static str] {
    let hybrid = std::path::Path::new("/sys/fs/cgroup/unified").exists();
    match (subject.is_embedded(), hybrid) {
        (false, _) => &[""],
        (true, true) => &HANDLERS[..2],
        (true, false) => &HANDLERS,
    }
}

fn sandbox<'a>(subject: &'a Subject, handler: &str) -> Result<Sandbox<'a>> {
    let config = subject.sandbox_config(&format!("declared{handler}"))?;
    subject.sandbox_by(config, handler)
}

fn config(sandbox: &Sandbox<'_>, name: &str, image: &str, script: &str) -> v1::ContainerConfig {
    let mut config = sandbox.script(name, script);
    config.image.get_or_insert_default().image = image.into();
    config
}

fn read_only(mut config: v1::ContainerConfig) -> v1::ContainerConfig {
    let linux = config.linux.get_or_insert_default();
    linux.security_context = Some(v1::LinuxContainerSecurityContext {
        readonly_rootfs: true,
        ..Default::default()
    });
    config
}

#[test]
fn volumes_are_filled_from_the_image_per_container() -> Result<()> {
    let subject = Subject::shared()?;
    for handler in handlers(&subject) {
        let sandbox = sandbox(&subject, handler)?;
        let script = "ls /data; cat /data/seed; stat -c %u:%a /data/seed; \
                      touch /data/new /run/cache/new /missing/deep/new && \
                      ls /run/cache /missing/deep; \
                      grep -c -E ' /(data|run/cache|missing/deep) ' /proc/self/mountinfo";
        let expected = "seed\nof the image\n1000:640\n/missing/deep:\nnew\n\n/run/cache:\nnew\n3\n";
        let plain = config(&sandbox, "plain", images::VOLUMES, script);
        assert_eq!(sandbox.output_of(plain)?, expected, "{handler:?}");
        // Also with a read-only root, and again: each container has its own volumes.
        let guarded = config(&sandbox, "guarded", images::VOLUMES, script);
        let output = sandbox.output_of(read_only(guarded))?;
        assert_eq!(output, expected, "{handler:?}");
    }
    Ok(())
}

#[test]
fn a_mount_replaces_a_declared_volume() -> Result<()> {
    let subject = Subject::shared()?;
    for handler in handlers(&subject) {
        let sandbox = sandbox(&subject, handler)?;
        let host = subject.runtime.scratch();
        let host = host.subdir(&format!("host/{}", sandbox.name()))?;
        std::fs::write(host.join("mine"), "")?;
        let mut config = config(&sandbox, "main", images::VOLUMES, "ls /data /run/cache");
        config.mounts = ["/data/", "/run/cache"]
            .map(|path| v1::Mount {
                host_path: host.display().to_string(),
                container_path: path.into(),
                ..Default::default()
            })
            .into();
        if !subject.is_embedded() {
            // Containerd does not detect that a link leads there.
            config.mounts.truncate(1);
        }
        let output = sandbox.output_of(config)?;
        assert!(output.starts_with("/data:\nmine\n"), "{handler:?} {output}");
        assert!(!output.contains("seed"), "{handler:?} {output}");
        if subject.is_embedded() {
            assert!(
                output.ends_with("/run/cache:\nmine\n"),
                "{handler:?} {output}"
            );
        }
    }
    Ok(())
}

#[test]
fn no_declared_volume_exposes_file_systems_of_the_host() -> Result<()> {
    let subject = Subject::shared()?;
    if !subject.is_embedded() {
        subject.skip("the attack would reach the host");
        return Ok(());
    }
    for handler in HANDLERS {
        let sandbox = sandbox(&subject, handler)?;
        for (number, volume) in images::HOSTILE_VOLUMES.iter().enumerate() {
            for guarded in [false, true] {
                let name = format!("v{number}-{guarded}");
                let image = images::with_volume(volume);
                let mut config = config(&sandbox, &name, &image, "true");
                if guarded {
                    config = read_only(config);
                }
                let error = refused(sandbox.create(config));
                let message = error.message;
                assert!(
                    message.contains(volume) && message.contains("at or below /proc, /sys or /dev"),
                    "{handler:?} {volume}: {message}"
                );
            }
        }
    }
    Ok(())
}

/// Read-only mounts of the pod stay read-only, whatever link of the image leads to them.
#[test]
fn no_declared_volume_replaces_a_read_only_mount() -> Result<()> {
    let subject = Subject::shared()?;
    for handler in handlers(&subject) {
        let sandbox = sandbox(&subject, handler)?;
        let host = subject.runtime.scratch();
        let host = host.subdir(&format!("host/{}", sandbox.name()))?;
        let script = "touch /guarded/x /links/guarded/x /run/cache/ok; ls /run/cache";
        let mut config = read_only(config(&sandbox, "main", images::VOLUMES, script));
        config.mounts = vec![v1::Mount {
            host_path: host.display().to_string(),
            container_path: "/guarded".into(),
            readonly: true,
            ..Default::default()
        }];
        assert_eq!(sandbox.output_of(config)?, "ok\n", "{handler:?}");
        assert_eq!(std::fs::read_dir(&host)?.count(), 0, "{handler:?}");
    }
    Ok(())
}
