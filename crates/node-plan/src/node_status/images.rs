//! The images in the status: the scheduler prefers nodes that already have a large image.

use super::object::ContainerImage;

/// Maximum number of names listed for one image.
const MAX_NAMES: usize = 5;

/// An image in the runtime.
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

/// The largest images first, at most `max` of them. Images without a name are omitted: the
/// scheduler compares names, and the API server would write an empty list of names as null.
#[must_use]
pub fn listed(mut images: Vec<ImageFact>, max: Option<usize>) -> Vec<ContainerImage> {
    for image in &mut images {
        image.digests.retain(|name| !name.is_empty());
        image.tags.retain(|name| !name.is_empty());
    }
    images.retain(|image| !image.digests.is_empty() || !image.tags.is_empty());
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
        assert_eq!(listed(vec![image("d", 9, 0, 40)], None)[0].names.len(), 5);
        assert!(rows(Some(0)).is_empty());
    }

    #[test]
    fn images_without_a_name_are_not_listed_and_take_no_place() {
        let image = |number: u64, tags: &[&str]| ImageFact {
            id: format!("sha256:{number}").into(),
            digests: Vec::new(),
            tags: tags.iter().map(|tag| (*tag).into()).collect(),
            size: number,
        };
        let mut images: Vec<ImageFact> = (0..300)
            .map(|number| match number % 3 {
                0 => image(number, &[]),
                1 => image(number, &[""]),
                _ => image(number, &["", "a:1"]),
            })
            .collect();
        images.push(image(7, &[]));
        let listed = listed(images, Some(50));
        assert_eq!(listed.len(), 50);
        assert_eq!(listed[0].size_bytes, 299);
        assert!(listed.iter().all(|image| *image.names == ["a:1".into()]));
    }
}
