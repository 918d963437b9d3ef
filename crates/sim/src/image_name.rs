//! Normalization of image names, as in runtimes: `busybox` is `docker.io/library/busybox:latest`.

/// The full name of `name`; an identifier (`sha256:...`) is unchanged.
pub(crate) fn canonical(name: &str) -> String {
    if name.starts_with("sha256:") {
        return name.to_owned();
    }
    let (repository, rest) = match name.split_once('@') {
        Some((repository, digest)) => (repository, format!("@{digest}")),
        None => match name.rsplit_once(':') {
            // A colon before a slash belongs to the registry's port.
            Some((repository, tag)) if !tag.contains('/') => (repository, format!(":{tag}")),
            _ => (name, ":latest".to_owned()),
        },
    };
    let first = repository
        .split_once('/')
        .map_or("", |(registry, _)| registry);
    let registry = if first.contains(['.', ':']) || first == "localhost" {
        ""
    } else if first.is_empty() {
        "docker.io/library/"
    } else {
        "docker.io/"
    };
    format!("{registry}{repository}{rest}")
}

/// The part of a canonical name before its tag or digest.
pub(crate) fn repository(canonical: &str) -> &str {
    let name = canonical
        .split_once('@')
        .map_or(canonical, |(name, _)| name);
    match name.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => repository,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_normalized_as_in_containerd() {
        for (short, full) in [
            ("busybox", "docker.io/library/busybox:latest"),
            ("busybox:1.36", "docker.io/library/busybox:1.36"),
            ("me/app", "docker.io/me/app:latest"),
            ("localhost:5000/app", "localhost:5000/app:latest"),
            ("registry.k8s.io/pause:3.10", "registry.k8s.io/pause:3.10"),
            ("busybox@sha256:ab", "docker.io/library/busybox@sha256:ab"),
            ("sha256:ab", "sha256:ab"),
        ] {
            assert_eq!(canonical(short), full);
            assert_eq!(canonical(full), full);
        }
        assert_eq!(repository("localhost:5000/app:v1"), "localhost:5000/app");
    }
}
