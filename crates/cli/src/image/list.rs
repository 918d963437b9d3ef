//! Images as a table, or as a document.

use rubelet_cri::v1;
use serde_json::{Value, json};

use crate::{
    print::{document, table},
    size::size,
};

/// Form of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ListOutput {
    /// A table with digests and whole identifiers
    Wide,
    /// JSON
    Json,
    /// YAML
    Yaml,
}

/// Length of an identifier that distinguishes images.
const SHORT_ID: usize = 12;

pub(super) fn render(images: &[v1::Image], output: Option<ListOutput>) -> String {
    match output {
        Some(ListOutput::Json | ListOutput::Yaml) => {
            let all: Vec<Value> = images.iter().map(entry).collect();
            let all = json!({ "images": all });
            document(&all, output == Some(ListOutput::Yaml))
        }
        _ => rows(images, output == Some(ListOutput::Wide)),
    }
}

fn entry(image: &v1::Image) -> Value {
    json!({
        "id": image.id,
        "repoTags": image.repo_tags,
        "repoDigests": image.repo_digests,
        "size": image.size,
        "pinned": image.pinned,
    })
}

fn rows(images: &[v1::Image], wide: bool) -> String {
    if images.is_empty() {
        return String::new();
    }
    let mut heading = vec!["IMAGE", "TAG", "IMAGE ID", "SIZE"];
    if wide {
        heading.insert(2, "DIGEST");
    }
    let mut rows = vec![heading.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    for image in images {
        let names: Vec<(String, String)> = match image.repo_tags.is_empty() {
            false => image.repo_tags.iter().map(|name| split(name)).collect(),
            true => vec![(untagged(image), "<none>".to_owned())],
        };
        for (name, tag) in names {
            let mut row = vec![name, tag, id(&image.id, wide), size(image.size)];
            if wide {
                let digest = image
                    .repo_digests
                    .first()
                    .and_then(|name| name.split_once('@'));
                row.insert(2, digest.map_or("<none>", |(_, digest)| digest).to_owned());
            }
            rows.push(row);
        }
    }
    table(&rows)
}

/// Name and tag. A colon before the last slash belongs to a port.
fn split(name: &str) -> (String, String) {
    match name.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name.to_owned(), tag.to_owned()),
        _ => (name.to_owned(), "<none>".to_owned()),
    }
}

fn untagged(image: &v1::Image) -> String {
    let name = image
        .repo_digests
        .first()
        .and_then(|name| name.split_once('@'));
    name.map_or("<none>", |(name, _)| name).to_owned()
}

fn id(id: &str, whole: bool) -> String {
    let hex = id.strip_prefix("sha256:").unwrap_or(id);
    match whole {
        true => id.to_owned(),
        false => hex.chars().take(SHORT_ID).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_no_tag() {
        let split = |name| {
            let (name, tag) = split(name);
            format!("{name} {tag}")
        };
        assert_eq!(split("127.0.0.1:5000/a/b:1"), "127.0.0.1:5000/a/b 1");
        assert_eq!(split("127.0.0.1:5000/a/b"), "127.0.0.1:5000/a/b <none>");
    }

    #[test]
    fn an_image_has_a_row_for_each_name() {
        let digest = format!("sha256:{}", "d".repeat(64));
        let images = [
            v1::Image {
                id: format!("sha256:{}", "a".repeat(64)),
                repo_tags: vec!["example.com/a:1".to_owned(), "example.com/a:2".to_owned()],
                size: 2_000_000,
                ..Default::default()
            },
            v1::Image {
                id: format!("sha256:{}", "b".repeat(64)),
                repo_digests: vec![format!("example.com/b@{digest}")],
                size: 1,
                ..Default::default()
            },
        ];
        assert_eq!(
            render(&images, None),
            "IMAGE           TAG      IMAGE ID       SIZE\n\
             example.com/a   1        aaaaaaaaaaaa   2.00MB\n\
             example.com/a   2        aaaaaaaaaaaa   2.00MB\n\
             example.com/b   <none>   bbbbbbbbbbbb   1B\n"
        );
        assert!(render(&images, Some(ListOutput::Wide)).contains(&digest));
        assert_eq!(render(&[], None), "");
        assert_eq!(
            render(&[], Some(ListOutput::Json)),
            "{\n    \"images\": []\n}\n"
        );
    }
}
