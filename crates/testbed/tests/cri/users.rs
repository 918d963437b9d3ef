//! User and groups of containers.

use anyhow::Result;
use rubelet_cri::v1::{self, LinuxContainerSecurityContext as Context};
use rubelet_testbed::images;

use crate::subject::{Sandbox, Subject, refused};

const WHO: &str =
    "id -u; id -g; grep ^Groups: /proc/self/status | cut -f2 | tr -s ' ' | sed 's/ *$//'";

fn as_user(
    sandbox: &Sandbox<'_>,
    name: &str,
    image: &str,
    context: Context,
) -> v1::ContainerConfig {
    let mut config = sandbox.script(name, WHO);
    config.image = Some(v1::ImageSpec {
        image: image.into(),
        ..Default::default()
    });
    config.linux.get_or_insert_default().security_context = Some(context);
    config
}

fn id(value: i64) -> Option<v1::Int64Value> {
    Some(v1::Int64Value { value })
}

#[test]
fn the_user_is_the_images_or_the_requested_one() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("users")?;
    let rows = [
        (
            "root",
            images::BUSYBOX_IMAGE,
            Context::default(),
            "0\n0\n0\n",
        ),
        (
            "number",
            images::NUMERIC_USER,
            Context::default(),
            "1000\n1000\n1000 2000\n",
        ),
        (
            "name",
            images::NAMED_USER,
            Context::default(),
            "1000\n1000\n1000 2000\n",
        ),
        (
            "other",
            images::NAMED_USER,
            Context {
                run_as_user: id(7),
                ..Context::default()
            },
            "7\n0\n0\n",
        ),
        (
            "group",
            images::BUSYBOX_IMAGE,
            Context {
                run_as_user: id(1000),
                run_as_group: id(9),
                ..Context::default()
            },
            "1000\n9\n9 2000\n",
        ),
        (
            "username",
            images::BUSYBOX_IMAGE,
            Context {
                run_as_username: "app".into(),
                ..Context::default()
            },
            "1000\n1000\n1000 2000\n",
        ),
        (
            "more",
            images::BUSYBOX_IMAGE,
            Context {
                run_as_user: id(1000),
                supplemental_groups: vec![5, 6],
                ..Context::default()
            },
            "1000\n1000\n5 6 1000 2000\n",
        ),
    ];
    for (name, image, context, wanted) in rows {
        let output = sandbox.output_of(as_user(&sandbox, name, image, context))?;
        assert_eq!(output, wanted, "{name}");
    }
    Ok(())
}

#[test]
fn strict_supplemental_groups_ignore_the_image() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("strict")?;
    let context = Context {
        run_as_user: id(1000),
        run_as_group: id(1000),
        supplemental_groups: vec![5],
        supplemental_groups_policy: v1::SupplementalGroupsPolicy::Strict.into(),
        ..Context::default()
    };
    let config = as_user(&sandbox, "main", images::BUSYBOX_IMAGE, context);
    let container = sandbox.start(config)?;
    sandbox.ended(&container)?;
    sandbox.wait_log("main", "5")?;
    let texts: Vec<_> = sandbox
        .log("main")?
        .into_iter()
        .map(|line| line.text)
        .collect();
    assert_eq!(texts, ["1000", "1000", "5 1000"]);
    let user = sandbox.status(&container)?.user.unwrap_or_default();
    let linux = user.linux.unwrap_or_default();
    assert_eq!((linux.uid, linux.gid), (1000, 1000));
    assert_eq!(linux.supplemental_groups, [5, 1000]);
    Ok(())
}

#[test]
fn a_user_that_the_image_does_not_know_is_refused() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("unknown")?;
    let context = Context {
        run_as_username: "nobody-knows-me".into(),
        ..Context::default()
    };
    let error = refused(sandbox.start(as_user(&sandbox, "main", images::BUSYBOX_IMAGE, context)));
    if subject.is_embedded() {
        assert!(error.message.contains("nobody-knows-me"), "{error}");
    }
    let context = Context {
        run_as_group: id(5),
        ..Context::default()
    };
    subject.invalid(sandbox.create(as_user(&sandbox, "group", images::BUSYBOX_IMAGE, context)));
    Ok(())
}
