//! Images that are mounted into a container.

use anyhow::Result;
use rubelet_cri::{ImageService, v1};
use rubelet_testbed::{Registry, images};

use crate::subject::{Subject, refused, remove};

fn spec(image: &str) -> Option<v1::ImageSpec> {
    Some(v1::ImageSpec {
        image: image.into(),
        ..Default::default()
    })
}

fn mount(image: &str, sub_path: &str, inside: &str) -> v1::Mount {
    v1::Mount {
        container_path: inside.into(),
        readonly: true,
        image: spec(image),
        image_sub_path: sub_path.into(),
        ..Default::default()
    }
}

fn id_of(subject: &Subject, image: &str) -> Result<String> {
    let request = v1::ImageStatusRequest {
        image: spec(image),
        verbose: false,
    };
    let answer = subject.ask(subject.client().image_status(request))?;
    Ok(answer.image.unwrap_or_default().id)
}

#[test]
fn an_image_and_a_subpath_are_mounted_read_only() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("volume")?;
    let script = "head -1 /all/etc/passwd; cat /part/passwd | head -1; \
                  touch /all/x 2>&1 | grep -c Read-only; ls -d /all/bin/sh";
    let mut config = sandbox.script("main", script);
    config.mounts = vec![
        mount(images::NAMED_USER, "", "/all"),
        mount(images::NAMED_USER, "etc", "/part"),
    ];
    let id = sandbox.start(config)?;
    assert_eq!(sandbox.ended(&id)?.exit_code, 0);
    let root = "root:x:0:0:root:/root:/bin/sh";
    let log = sandbox.log("main")?;
    let lines: Vec<&str> = log.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(lines, [root, root, "1", "/all/bin/sh"]);
    if subject.is_embedded() {
        // The kubelet uses this to detect that the image is in use. Containerd reports the given
        // name.
        let mounts = sandbox.status(&id)?.mounts;
        let part = mounts.iter().find(|one| one.container_path == "/part");
        let part = part.unwrap();
        let image = part.image.clone().unwrap_or_default();
        assert_eq!(image.image, id_of(&subject, images::NAMED_USER)?);
        assert_eq!(image.user_specified_image, images::NAMED_USER);
        assert_eq!(part.image_sub_path, "etc");
        let left = std::fs::read_to_string("/proc/self/mountinfo")?;
        let bundle = format!("/containers/{id}/");
        assert!(!left.contains(&bundle), "only the container sees the mount");
    }
    Ok(())
}

#[test]
fn a_removed_image_stays_mounted_in_its_container() -> Result<()> {
    let subject = Subject::shared()?;
    if !subject.is_embedded() {
        subject.skip("containerd leaves such an image unusable");
        return Ok(());
    }
    let registry = Registry::start()?;
    let name = registry.image("volume:1");
    let request = v1::PullImageRequest {
        image: spec(&name),
        ..Default::default()
    };
    subject.ask(subject.client().pull_image(request))?;
    let image = id_of(&subject, &name)?;
    let sandbox = subject.sandbox("keeper")?;
    let mut config = sandbox.script("main", "echo ready; sleep 1000");
    config.mounts = vec![mount(&name, "", "/all")];
    let id = sandbox.start(config)?;
    sandbox.wait_log("main", "ready")?;
    let request = v1::RemoveImageRequest { image: spec(&name) };
    subject.ask(subject.client().remove_image(request))?;
    assert_eq!(id_of(&subject, &image)?, "");
    let said = subject.truth.exec(&id, &["cat", "/all/note"])?;
    assert!(!said.is_empty());
    subject.ask(remove(subject.client(), &id))?;
    Ok(())
}

#[test]
fn images_that_cannot_be_mounted_are_reported() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("wrong")?;
    let create = |mount: v1::Mount| {
        let mut config = sandbox.script("main", "true");
        config.mounts = vec![mount];
        sandbox.create(config)
    };
    let absent = create(mount("localhost/rubelet/absent:1", "", "/all"));
    let error = refused(absent);
    assert!(
        error.message.contains("localhost/rubelet/absent:1"),
        "{error}"
    );
    let error = refused(create(mount(images::NAMED_USER, "no/such", "/all")));
    assert!(error.message.contains("no/such"), "{error}");
    let written = v1::Mount {
        readonly: false,
        ..mount(images::NAMED_USER, "", "/all")
    };
    assert!(
        refused(create(written)).message.contains("read"),
        "read-only"
    );
    let both = v1::Mount {
        host_path: "/etc".into(),
        ..mount(images::NAMED_USER, "", "/all")
    };
    refused(create(both));
    // Nothing of them is left.
    let mut config = sandbox.script("main", "cat /all");
    config.mounts = vec![mount(images::NAMED_USER, "/etc/../etc/passwd", "/all")];
    if subject.is_embedded() {
        // Containerd mounts directories only.
        assert!(sandbox.output_of(config)?.starts_with("root:"));
    }
    Ok(())
}
