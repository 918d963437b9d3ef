//! Finds the images in use by containers of the runtime and by pods of this node.

use std::collections::HashSet;

use rubelet_api::{pod::Pod, volume::VolumeSource};
use rubelet_cri::{RuntimeService, v1};
use serde_json::Value;

use rubelet_node_state::keyring::repository;

/// Identifiers, names and digests of images.
#[derive(Debug, Default)]
pub(super) struct ImageNames(HashSet<String>);

impl ImageNames {
    /// The images of containers, whatever their state.
    pub(super) fn of_containers(containers: &[v1::Container]) -> Self {
        let mut names = Self::default();
        for container in containers {
            let image = container.image.as_ref().map(|image| &*image.image);
            let all = [&*container.image_id, &*container.image_ref];
            for name in all.into_iter().chain(image) {
                names.add(name);
            }
        }
        names
    }

    /// Adds the images that a pod names.
    pub(super) fn add_pod(&mut self, pod: &Pod) {
        let spec = &pod.spec;
        for container in spec.init_containers.iter().chain(&spec.containers) {
            self.add(&container.image);
        }
        for ephemeral in &spec.ephemeral_containers {
            self.add(&ephemeral.container.image);
        }
        for volume in &spec.volumes {
            if let VolumeSource::Image { reference, .. } = &volume.source {
                self.add(reference);
            }
        }
    }

    /// Adds a name as written, and normalized.
    fn add(&mut self, name: &str) {
        if !name.is_empty() {
            self.0.insert(name.to_owned());
            self.0.insert(in_full(name));
        }
    }

    /// True if the image is among them: by its identifier, a tag or a digest.
    pub(super) fn include(&self, image: &v1::Image) -> bool {
        let names = image.repo_tags.iter().chain(&image.repo_digests);
        self.0.contains(&image.id)
            || names
                .into_iter()
                .any(|name| self.0.contains(name) || self.0.contains(&in_full(name)))
    }
}

/// Normalizes a name: with its registry, and with a tag or a digest. If it has both, the digest
/// counts.
fn in_full(name: &str) -> String {
    let repository = repository(name);
    if let Some((_, digest)) = name.split_once('@') {
        return format!("{repository}@{digest}");
    }
    let last = name.rsplit('/').next().unwrap_or(name);
    let tag = last.split_once(':').map_or("latest", |(_, tag)| tag);
    format!("{repository}:{tag}")
}

/// The sandbox image of a runtime that does not pin it: containerd up to 1.6 reports it in its
/// verbose status. Without this image no pod could start on a node that is offline.
pub(super) async fn sandbox_image(runtime: &dyn RuntimeService) -> ImageNames {
    let mut names = ImageNames::default();
    let request = v1::StatusRequest { verbose: true };
    let Ok(status) = runtime.status(request).await else {
        return names;
    };
    for text in status.info.values() {
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        if let Some(name) = value.get("sandboxImage").and_then(Value::as_str) {
            names.add(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_full_image_names_mean_the_same() {
        for (name, full) in [
            ("web", "docker.io/library/web:latest"),
            ("docker.io/library/web:1", "docker.io/library/web:1"),
            ("team/web:1", "docker.io/team/web:1"),
            ("localhost:5000/web", "localhost:5000/web:latest"),
            ("web@sha256:00", "docker.io/library/web@sha256:00"),
            ("quay.io/web:1@sha256:00", "quay.io/web@sha256:00"),
        ] {
            assert_eq!(in_full(name), full);
        }
    }

    #[test]
    fn an_image_matches_each_of_its_names() {
        let container = v1::Container {
            image_ref: "sha256:11".to_owned(),
            image: Some(v1::ImageSpec {
                image: "web:1".to_owned(),
                ..Default::default()
            }),
            ..Default::default()
        };
        let names = ImageNames::of_containers(&[container]);
        let image = |id: &str, tag: &str| v1::Image {
            id: id.to_owned(),
            repo_tags: vec![tag.to_owned()],
            ..Default::default()
        };
        assert!(names.include(&image("sha256:11", "other:1")));
        assert!(names.include(&image("sha256:22", "docker.io/library/web:1")));
        assert!(!names.include(&image("sha256:22", "docker.io/library/web:2")));
    }
}
