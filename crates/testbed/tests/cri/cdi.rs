//! Devices of the Container Device Interface (CDI).

use std::fs;

use anyhow::Result;
use rubelet_cri::v1;

use crate::subject::{Runtime, Sandbox, Subject, refused};

const ZERO: &str = r#"
cdiVersion: 0.6.0
kind: rubelet.test/zero
containerEdits:
  env: [DEVICES=zero]
devices:
- name: "0"
  containerEdits:
    deviceNodes:
    - { path: /dev/vendor/zero0, hostPath: /dev/zero }
    - { path: /dev/vendor/tun, hostPath: /dev/net/tun, permissions: r }
    mounts: [{ hostPath: /etc/hostname, containerPath: /opt/vendor/name, options: [ro, bind] }]
    additionalGids: [4242]
- name: hooked
  containerEdits:
    hooks: [{ hookName: createContainer, path: /bin/true }]
"#;

fn asks(sandbox: &Sandbox<'_>, name: &str, device: &str, script: &str) -> v1::ContainerConfig {
    let mut config = sandbox.script(name, script);
    config.cdi_devices = vec![v1::CdiDevice {
        name: device.to_owned(),
    }];
    config
}

#[test]
fn a_cdi_device_adds_nodes_mounts_env_and_groups() -> Result<()> {
    let subject = Subject::shared()?;
    let Runtime::Served(served) = &*subject.runtime else {
        subject.skip("the directories of the private containerd are those of this machine");
        return Ok(());
    };
    let dir = served.environment().cdi_spec_dir();
    fs::create_dir_all(&dir)?;
    fs::write(dir.join("zero.yaml"), ZERO)?;
    let sandbox = subject.sandbox("cdi")?;
    let script = "ls -l /dev/vendor/zero0 | awk '{print $5,$6}'; \
                  dd if=/dev/vendor/zero0 bs=1 count=1 2>/dev/null | wc -c; \
                  (: < /dev/vendor/tun) 2>&1 && (: > /dev/vendor/tun) 2>&1 | grep -c 'not permitted'; \
                  wc -l < /opt/vendor/name; echo $DEVICES; id -G";
    let config = asks(&sandbox, "main", "rubelet.test/zero=0", script);
    let said = sandbox.output_of(config)?;
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[..5], ["1, 5", "1", "1", "1", "zero"], "{said}");
    assert!(lines[5].ends_with("4242"), "{said}");

    // Devices that can't be injected are reported, and the files are read again each time.
    let absent = refused(sandbox.create(asks(&sandbox, "absent", "rubelet.test/zero=1", "true")));
    assert!(absent.message.contains("rubelet.test/zero=0"), "{absent}");
    let hooked = asks(&sandbox, "hooked", "rubelet.test/zero=hooked", "true");
    let hooked = subject.invalid(sandbox.create(hooked));
    assert!(hooked.message.contains("runs no hooks"), "{hooked}");
    let nameless = subject.invalid(sandbox.create(asks(&sandbox, "nameless", "gpu", "true")));
    assert!(nameless.message.contains("\"gpu\""), "{nameless}");
    fs::write(dir.join("broken.json"), "{ not yaml")?;
    let json = ZERO.replace("rubelet.test/zero", "rubelet.test/other");
    fs::write(dir.join("other.yaml"), json)?;
    let config = asks(&sandbox, "other", "rubelet.test/other=0", "echo $DEVICES");
    assert_eq!(sandbox.output_of(config)?, "zero\n");
    fs::remove_dir_all(&dir)?;
    Ok(())
}
