//! Image removal as in other tools: a name is removed, and the image with its last name.

use anyhow::anyhow;
use rubelet_cri::{ONE_NAME, v1};
use rubelet_images::Reference;

use super::{
    backend::{Backend, in_its_words},
    each, users,
};
use crate::{
    failure::CommandError,
    terminal::{Terminal, visible},
};

#[derive(Debug, Clone, clap::Args)]
pub(super) struct RemoveArgs {
    /// Names or IDs of images
    #[arg(value_name = "IMAGE", required = true)]
    names: Vec<String>,
    /// Also an image that has several names, by its identifier, or that containers use; those keep
    /// its files as long as they are there
    #[arg(short, long)]
    force: bool,
}

/// The images to remove.
#[derive(Debug, PartialEq, Eq)]
enum Removal {
    /// A name; the image stays with the others.
    Name(String),
    /// The image with all its names.
    Image,
}

pub(super) async fn run(
    backend: &Backend,
    args: &RemoveArgs,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    each(&args.names, terminal, async |name, terminal| {
        remove(backend, name, args.force, terminal).await
    })
    .await
}

async fn remove(
    backend: &Backend,
    name: &str,
    force: bool,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    let image = backend.find(name, false).await?.image.unwrap_or_default();
    let removal = decide(name, &image);
    let mut spec = v1::ImageSpec {
        image: image.id.clone(),
        ..Default::default()
    };
    match &removal {
        Removal::Name(one) => {
            if !force {
                check_takes_one_name(backend, one, &image).await?;
            }
            spec.image.clone_from(one);
            spec.annotations
                .insert(ONE_NAME.to_owned(), "true".to_owned());
        }
        Removal::Image if !force => {
            check_names(name, &image)?;
            check_unused(backend, name, &image).await?;
        }
        Removal::Image => {}
    }
    let request = v1::RemoveImageRequest { image: Some(spec) };
    let removed = backend.images.remove_image(request).await;
    removed.map_err(|error| in_its_words(error, "remove", name))?;
    let mut text = String::new();
    let all = image.repo_tags.iter().chain(&image.repo_digests);
    for gone in all.filter(|one| removal.takes(one)) {
        text.push_str(&format!("Untagged: {}\n", visible(gone)));
    }
    if removal == Removal::Image {
        text.push_str(&format!("Deleted: {}\n", visible(&image.id)));
    }
    terminal.print(text)
}

impl Removal {
    fn takes(&self, name: &str) -> bool {
        match self {
            Self::Name(one) => one == name,
            Self::Image => true,
        }
    }
}

/// A name with a tag is removed alone if there are others; the last one, and an identifier, mean
/// the image. A name with a digest is treated likewise as long as there are tags.
fn decide(name: &str, image: &v1::Image) -> Removal {
    let reference = name.parse::<Reference>().ok();
    let spelled_out = reference.and_then(|reference| match reference.digest() {
        Some(digest) => Some(reference.at(digest)),
        None => reference.tagged(),
    });
    let Some(one) = spelled_out else {
        return Removal::Image;
    };
    let (tags, digests) = (&image.repo_tags, &image.repo_digests);
    let others = match (tags.contains(&one), digests.contains(&one)) {
        (true, _) => tags.len() > 1,
        (_, true) => !tags.is_empty() || digests.len() > 1,
        _ => false,
    };
    match others {
        true => Removal::Name(one),
        false => Removal::Image,
    }
}

/// An identifier removes all names, some of which the user may not think of.
fn check_names(name: &str, image: &v1::Image) -> Result<(), CommandError> {
    if image.repo_tags.len() < 2 {
        return Ok(());
    }
    Err(anyhow!(
        "the image {name:?} has {} names: {}; remove it by its names, or all of them with --force",
        image.repo_tags.len(),
        image.repo_tags.join(", ")
    )
    .into())
}

async fn check_unused(
    backend: &Backend,
    name: &str,
    image: &v1::Image,
) -> Result<(), CommandError> {
    let Some(runtime) = backend.runtime() else {
        return Ok(());
    };
    match users::first(runtime, image).await? {
        None => Ok(()),
        Some(user) => Err(anyhow!(
            "the image {name:?} is used by {user}; remove that first, or the image nevertheless with \
             --force"
        )
        .into()),
    }
}

/// Other runtimes remove all names of an image.
async fn check_takes_one_name(
    backend: &Backend,
    name: &str,
    image: &v1::Image,
) -> Result<(), CommandError> {
    let Some(other) = backend.other_runtime().await? else {
        return Ok(());
    };
    Err(anyhow!(
        "{other} cannot take the name {name:?} away alone, only all of the image: {}; --force does that",
        image.repo_tags.join(", ")
    )
    .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(tags: &[&str], digests: &[&str]) -> v1::Image {
        v1::Image {
            id: format!("sha256:{}", "a".repeat(64)),
            repo_tags: tags.iter().map(|&tag| tag.to_owned()).collect(),
            repo_digests: digests.iter().map(|&one| one.to_owned()).collect(),
            ..Default::default()
        }
    }

    #[test]
    fn a_name_goes_alone_as_long_as_there_are_others() {
        let digest = format!("r.test/a@sha256:{}", "d".repeat(64));
        let busybox = "docker.io/library/busybox";
        let (latest, one) = (format!("{busybox}:latest"), format!("{busybox}:1"));
        let two = image(&[&one, &latest], &[&digest]);
        let name = |name: &str| Removal::Name(name.to_owned());
        assert_eq!(decide("busybox", &two), name(&latest));
        assert_eq!(decide(&latest, &two), name(&latest));
        assert_eq!(decide("busybox:1", &two), name(&one));
        assert_eq!(decide(&digest, &two), name(&digest));
        assert_eq!(decide("aaaa", &two), Removal::Image);
        assert_eq!(decide(&two.id, &two), Removal::Image);
        let single = image(&[&one], &[&digest]);
        assert_eq!(decide("busybox:1", &single), Removal::Image);
        assert_eq!(decide(&digest, &single), name(&digest));
        assert_eq!(decide(&digest, &image(&[], &[&digest])), Removal::Image);
    }

    #[test]
    fn an_identifier_does_not_take_several_names() {
        let error = check_names("aaaa", &image(&["r.test/a:1", "r.test/b:1"], &[]));
        let Err(CommandError::Error(error)) = error else {
            panic!("it is allowed");
        };
        assert_eq!(
            error.to_string(),
            "the image \"aaaa\" has 2 names: r.test/a:1, r.test/b:1; remove it by its names, or all \
             of them with --force"
        );
        assert!(check_names("aaaa", &image(&["r.test/a:1"], &[])).is_ok());
    }
}
