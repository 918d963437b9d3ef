//! The images that the status lists: the scheduler likes nodes that have a large image already.

use super::object::ContainerImage;

/// So many names of one image are listed.
const MAX_NAMES: usize = 5;

/// An image as the runtime has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageFact {
    /// The runtime's identifier.
    pub id: Box<str>,
    /// Names with digests.
    pub digests: Vec<Box<str>>,
    /// Names with tags.
    pub tags: Vec<Box<str>>,
    /// Bytes.
    pub size: u64,
}

/// The largest images first, `max` of them at most.
#[must_use]
pub fn listed(mut images: Vec<ImageFact>, max: Option<usize>) -> Vec<ContainerImage> {
    images.sort_by(|a, b| (b.size, &b.id).cmp(&(a.size, &a.id)));
    images.truncate(max.unwrap_or(usize::MAX));
    images
        .into_iter()
        .map(|image| ContainerImage {
            names: image
                .digests
                .into_iter()
                .chain(image.tags)
                .take(MAX_NAMES)
                .collect(),
            size_bytes: image.size,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_come_first_with_five_names_each() {
        let image = |id: &str, size, digests: usize, tags: usize| {
            let names = |kind: &str, count| {
                (0..count)
                    .map(|number| format!("{id}{kind}{number}").into())
                    .collect()
            };
            ImageFact {
                id: id.into(),
                digests: names("@", digests),
                tags: names(":", tags),
                size,
            }
        };
        let images = || {
            vec![
                image("a", 1, 1, 1),
                image("b", 2, 4, 4),
                image("c", 2, 1, 0),
            ]
        };
        let rows = |max| -> Vec<String> {
            let listed = listed(images(), max);
            listed
                .iter()
                .map(|one| format!("{} {}", one.size_bytes, one.names.join(" ")))
                .collect()
        };
        assert_eq!(rows(None), ["2 c@0", "2 b@0 b@1 b@2 b@3 b:0", "1 a@0 a:0"]);
        assert_eq!(rows(Some(1)), ["2 c@0"]);
        assert!(rows(Some(0)).is_empty());
    }
}
