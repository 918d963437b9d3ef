//! The image service: ListImages, ImageStatus, PullImage, RemoveImage.

use anyhow::Result;
use futures_util::future::join_all;
use rubelet_cri::{CriErrorKind, CriResult, ImageService, v1};
use rubelet_testbed::{Registry, agent::free_port, images};

use crate::subject::{Sandbox, Subject, refused};

fn spec(image: &str) -> Option<v1::ImageSpec> {
    Some(v1::ImageSpec {
        image: image.into(),
        ..Default::default()
    })
}

fn status(subject: &Subject, image: &str) -> CriResult<Option<v1::Image>> {
    let request = v1::ImageStatusRequest {
        image: spec(image),
        verbose: false,
    };
    Ok(subject.ask(subject.client().image_status(request))?.image)
}

async fn pull(subject: &Subject, image: &str) -> CriResult<String> {
    let request = v1::PullImageRequest {
        image: spec(image),
        ..Default::default()
    };
    Ok(subject.client().pull_image(request).await?.image_ref)
}

fn remove(subject: &Subject, image: &str) -> CriResult<()> {
    let request = v1::RemoveImageRequest { image: spec(image) };
    subject
        .ask(subject.client().remove_image(request))
        .map(drop)
}

fn run_with(sandbox: &Sandbox<'_>, name: &str, image: &str) -> CriResult<String> {
    let mut config = sandbox.script(name, "sleep 1000");
    config.image = spec(image);
    sandbox.start(config)
}

#[test]
fn images_are_listed_and_found_by_name_id_and_digest() -> Result<()> {
    let subject = Subject::shared()?;
    let image = status(&subject, images::NUMERIC_USER)?.unwrap();
    assert_eq!(image.repo_tags, [images::NUMERIC_USER]);
    assert_eq!(image.uid, Some(v1::Int64Value { value: 1000 }));
    assert!(image.id.starts_with("sha256:"), "{}", image.id);
    assert!(image.size > 500_000, "{}", image.size);
    let named = status(&subject, images::NAMED_USER)?.unwrap();
    assert_eq!((named.uid, named.username.as_str()), (None, "app"));
    let list = v1::ListImagesRequest::default();
    let all = subject.ask(subject.client().list_images(list))?.images;
    for name in [
        images::BUSYBOX_IMAGE,
        images::NUMERIC_USER,
        images::NAMED_USER,
    ] {
        let found = all
            .iter()
            .filter(|one| one.repo_tags.iter().any(|tag| tag == name));
        assert_eq!(found.count(), 1, "{name}");
    }
    let one = v1::ListImagesRequest {
        filter: Some(v1::ImageFilter {
            image: spec(images::NUMERIC_USER),
        }),
    };
    let one = subject.ask(subject.client().list_images(one))?.images;
    if subject.is_embedded() {
        // Containerd lists all images, whatever the filter is.
        let ids: Vec<_> = one.iter().map(|one| &one.id).collect();
        assert_eq!(ids, [&image.id]);
    }
    for name in [&image.id, &image.id["sha256:".len()..][..13].to_owned()] {
        let found = status(&subject, name)?;
        assert_eq!(found.map(|one| one.id).as_ref(), Some(&image.id), "{name}");
    }
    let verbose = v1::ImageStatusRequest {
        image: spec(images::NUMERIC_USER),
        verbose: true,
    };
    let answer = subject.ask(subject.client().image_status(verbose))?;
    assert!(answer.info.contains_key("info"), "{:?}", answer.info);
    Ok(())
}

#[test]
fn a_missing_image_is_not_an_error_for_status_and_removal() -> Result<()> {
    let subject = Subject::shared()?;
    assert_eq!(status(&subject, "localhost/no/such:1")?, None);
    remove(&subject, "localhost/no/such:1")?;
    let filter = v1::ListImagesRequest {
        filter: Some(v1::ImageFilter {
            image: spec("localhost/no/such:1"),
        }),
    };
    let listed = subject.ask(subject.client().list_images(filter))?.images;
    assert!(listed.is_empty() || !subject.is_embedded(), "{listed:#?}");
    Ok(())
}

#[test]
fn a_container_of_a_missing_image_is_refused() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("imageless")?;
    let error = refused(run_with(&sandbox, "main", "localhost/no/such:1"));
    assert!(error.message.contains("no/such"), "{error}");
    // The name is free afterwards.
    sandbox.waiting("main")?;
    Ok(())
}

#[test]
fn an_image_is_pulled_used_and_removed() -> Result<()> {
    let subject = Subject::shared()?;
    let registry = Registry::start()?;
    let name = registry.image("pulled:1");
    let reference = subject.ask(pull(&subject, &name))?;
    let image = status(&subject, &name)?.unwrap();
    assert_eq!(reference, image.id);
    assert_eq!(image.repo_tags, std::slice::from_ref(&name));
    assert_eq!(image.repo_digests.len(), 1, "{:?}", image.repo_digests);
    let by_digest = image.repo_digests[0].clone();
    assert_eq!(
        status(&subject, &by_digest)?.map(|one| one.id).as_ref(),
        Some(&image.id)
    );

    // Again, and concurrently: the same image.
    assert_eq!(subject.ask(pull(&subject, &name))?, reference);
    let all = subject.ask(join_all((0..4).map(|_| pull(&subject, &name))));
    for answer in all {
        assert_eq!(answer?, reference);
    }
    assert_eq!(subject.ask(pull(&subject, &by_digest))?, reference);

    let sandbox = subject.sandbox("puller")?;
    let container = run_with(&sandbox, "main", &name)?;
    let shown = sandbox.status(&container)?;
    assert_eq!(shown.image.unwrap_or_default().image, name);
    assert_eq!(shown.image_ref, by_digest);
    // The name is removed, running containers continue.
    remove(&subject, &name)?;
    remove(&subject, &image.id)?;
    assert_eq!(status(&subject, &name)?, None);
    assert_eq!(status(&subject, &image.id)?, None);
    assert_eq!(
        subject.truth.exec(&container, &["echo", "still"])?,
        "still\n"
    );
    remove(&subject, &name)?;
    Ok(())
}

#[test]
fn a_failed_pull_has_its_reason() -> Result<()> {
    let subject = Subject::shared()?;
    let port = free_port(std::net::Ipv4Addr::LOCALHOST.into())?;
    let error = refused(subject.ask(pull(&subject, &format!("127.0.0.1:{port}/nobody:1"))));
    assert!(error.message.contains(&port.to_string()), "{error}");
    let error = subject.invalid(subject.ask(pull(&subject, "Bad//Name")));
    assert!(error.message.contains("Bad//Name"), "{error}");
    let registry = Registry::start()?;
    let absent = registry.image("absent@sha256:".to_owned().as_str()) + &"0".repeat(64);
    let error = refused(subject.ask(pull(&subject, &absent)));
    assert_eq!(error.kind, CriErrorKind::NotFound, "{error}");
    Ok(())
}

#[test]
fn a_cancelled_pull_can_be_retried() -> Result<()> {
    let subject = Subject::shared()?;
    let registry = Registry::start()?;
    let name = registry.image("later:1");
    registry.held(|| {
        subject.ask(async {
            let wait = std::time::Duration::from_millis(500);
            let given_up = tokio::time::timeout(wait, pull(&subject, &name)).await;
            assert!(given_up.is_err(), "the registry doesn't answer yet");
        });
    });
    subject.ask(pull(&subject, &name))?;
    remove(&subject, &name)?;
    Ok(())
}
