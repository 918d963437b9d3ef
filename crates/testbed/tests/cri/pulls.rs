//! Pulls from registries of all kinds: with credentials, all image formats, faults.

use anyhow::Result;
use rubelet_cri::{CriErrorKind, CriResult, ImageService, v1};
use rubelet_testbed::Registry;
use rubelet_testbed::registry::{Access, Compression, Form, PASSWORD, PeerRegistry, USER};

use crate::subject::{Subject, refused};

fn pull(subject: &Subject, image: &str, auth: Option<v1::AuthConfig>) -> CriResult<String> {
    let request = v1::PullImageRequest {
        image: Some(v1::ImageSpec {
            image: image.into(),
            ..Default::default()
        }),
        auth,
        ..Default::default()
    };
    Ok(subject.ask(subject.client().pull_image(request))?.image_ref)
}

fn password() -> Option<v1::AuthConfig> {
    Some(v1::AuthConfig {
        username: USER.into(),
        password: PASSWORD.into(),
        ..Default::default()
    })
}

/// Runs a container of the image, then removes the image.
fn runs(subject: &Subject, image: &str) -> Result<()> {
    let sandbox = subject.sandbox("pulled")?;
    let mut config = sandbox.script("main", "cat /etc/group | head -1; ls -l /bin/sh | cut -c1");
    let spec = Some(v1::ImageSpec {
        image: image.into(),
        ..Default::default()
    });
    config.image.clone_from(&spec);
    assert_eq!(sandbox.output_of(config)?, "root:x:0:\nl\n");
    drop(sandbox);
    let removal = v1::RemoveImageRequest { image: spec };
    subject.ask(subject.client().remove_image(removal))?;
    Ok(())
}

#[test]
fn every_manifest_type_and_compression_is_supported() -> Result<()> {
    let subject = Subject::shared()?;
    let rows = [
        (Form::Oci, Compression::None),
        (Form::Oci, Compression::Gzip),
        (Form::Oci, Compression::Zstd),
        (Form::Docker, Compression::Gzip),
        (Form::Index, Compression::Gzip),
    ];
    for (form, compression) in rows {
        let registry = Registry::builder()
            .form(form)
            .compression(compression)
            .start()?;
        let name = registry.image("some/where/image:1.0");
        pull(&subject, &name, None)?;
        runs(&subject, &name)?;
    }
    Ok(())
}

#[test]
fn credentials_are_sent_on_request() -> Result<()> {
    let subject = Subject::shared()?;
    for access in [Access::Basic, Access::Token, Access::AnonymousToken] {
        let registry = Registry::builder().access(access).start()?;
        let name = registry.image(&format!("guarded-{access:?}:1").to_lowercase());
        if access == Access::AnonymousToken {
            pull(&subject, &name, None)?;
        } else {
            let error = refused(pull(&subject, &name, None));
            assert_ne!(error.kind, CriErrorKind::NotFound, "{error}");
            let wrong = v1::AuthConfig {
                username: USER.into(),
                password: "guessed".into(),
                ..Default::default()
            };
            let error = refused(pull(&subject, &name, Some(wrong)));
            assert!(!error.message.contains("guessed"), "{error}");
            pull(&subject, &name, password())?;
        }
        runs(&subject, &name)?;
    }
    Ok(())
}

#[test]
fn credentials_are_not_sent_to_redirected_blobs() -> Result<()> {
    let subject = Subject::shared()?;
    for access in [Access::Basic, Access::Token] {
        let registry = Registry::builder().access(access).redirects().start()?;
        let name = registry.image("redirected:1");
        pull(&subject, &name, password())?;
        assert_eq!(registry.leaked(), 0, "{access:?}");
        runs(&subject, &name)?;
    }
    Ok(())
}

#[test]
fn a_truncated_blob_never_becomes_an_image() -> Result<()> {
    let subject = Subject::shared()?;
    let registry = Registry::builder()
        .compression(Compression::Gzip)
        .cut_off(1000)
        .start()?;
    let name = registry.image("cut:1");
    refused(pull(&subject, &name, None));
    let status = v1::ImageStatusRequest {
        image: Some(v1::ImageSpec {
            image: name,
            ..Default::default()
        }),
        verbose: false,
    };
    let answer = subject.ask(subject.client().image_status(status))?;
    assert_eq!(answer.image, None);

    let registry = Registry::builder().cut_off(1).start()?;
    let name = registry.image("cut-once:1");
    if pull(&subject, &name, None).is_err() {
        // Not every runtime retries by itself; the kubelet does.
        pull(&subject, &name, None)?;
    }
    runs(&subject, &name)
}

#[test]
fn blobs_that_do_not_match_their_digest_are_refused() -> Result<()> {
    let subject = Subject::shared()?;
    for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
        let builder = Registry::builder()
            .compression(compression)
            .form(Form::Docker);
        let registry = builder.wrong_bytes().start()?;
        let name = registry.image("spoiled:1");
        let error = refused(pull(&subject, &name, None));
        assert_ne!(error.kind, CriErrorKind::NotFound, "{error}");
    }
    Ok(())
}

#[test]
fn a_registry_with_rate_limits_is_reported() -> Result<()> {
    let subject = Subject::shared()?;
    for status in [429, 503] {
        let registry = Registry::builder().refused(status).start()?;
        let error = refused(pull(&subject, &registry.image("busy:1"), None));
        assert!(error.message.contains(&status.to_string()), "{error}");
    }
    Ok(())
}

#[test]
fn debians_docker_registry_is_supported() -> Result<()> {
    let subject = Subject::shared()?;
    for access in [Access::Anonymous, Access::Basic] {
        let registry = PeerRegistry::start(subject.runtime.scratch(), access)?;
        for (name, form, compression) in [
            ("plain", Form::Oci, Compression::Gzip),
            ("docker", Form::Docker, Compression::Gzip),
            ("index", Form::Index, Compression::Zstd),
        ] {
            registry.push(name, form, compression)?;
            let image = registry.image(&format!("{name}:1"));
            if access == Access::Basic {
                refused(pull(&subject, &image, None));
            }
            pull(&subject, &image, password())?;
            runs(&subject, &image)?;
        }
        let absent = refused(pull(&subject, &registry.image("plain:2"), password()));
        assert_eq!(absent.kind, CriErrorKind::NotFound, "{absent}");
    }
    Ok(())
}
