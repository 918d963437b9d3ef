//! The meaning of the two arguments of `cp`.

use std::path::Path;

use super::super::failure::CommandError;

/// One side of a copy.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FileSpec<'a> {
    Local(&'a Path),
    Remote {
        namespace: Option<&'a str>,
        pod: &'a str,
        path: &'a str,
    },
}

impl<'a> FileSpec<'a> {
    /// The part before a colon is a pod, unless it can only be a path.
    pub(super) fn parse(text: &'a str) -> Result<Self, CommandError> {
        let wrong =
            |why| CommandError::Usage(format!("{text:?} is no place to copy from or to: {why}"));
        let is_path = text.starts_with(['/', '.']);
        let (pod, path) = match text.split_once(':') {
            Some(parts) if !is_path => parts,
            _ if text.is_empty() => return Err(wrong("it is empty")),
            _ => return Ok(Self::Local(Path::new(text))),
        };
        let (namespace, pod) = match pod.split_once('/') {
            Some((namespace, pod)) => (Some(namespace), pod),
            None => (None, pod),
        };
        if pod.is_empty() || namespace == Some("") {
            return Err(wrong("the name of the pod is missing"));
        }
        if pod.contains('/') {
            return Err(wrong("write NAMESPACE/POD:PATH, or ./ before a local path"));
        }
        if path.is_empty() {
            return Err(wrong("the path behind the colon is missing"));
        }
        Ok(Self::Remote {
            namespace,
            pod,
            path,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colon_makes_a_pod_of_what_is_before_it() {
        let remote = |namespace, pod, path| {
            Ok(FileSpec::Remote {
                namespace,
                pod,
                path,
            })
        };
        let local = |path| Ok(FileSpec::Local(Path::new(path)));
        for (text, expected) in [
            ("web:/etc/hosts", remote(None, "web", "/etc/hosts")),
            ("web:data", remote(None, "web", "data")),
            ("web:a:b", remote(None, "web", "a:b")),
            ("db/web:/x", remote(Some("db"), "web", "/x")),
            ("file", local("file")),
            ("dir/file", local("dir/file")),
            ("./a:b", local("./a:b")),
            ("/a:b", local("/a:b")),
            (".", local(".")),
            ("", Err("is empty")),
            (":x", Err("name of the pod")),
            ("/:x", local("/:x")),
            ("db/:x", Err("name of the pod")),
            ("a/b/c:x", Err("NAMESPACE/POD:PATH")),
            ("web:", Err("path behind")),
        ] {
            match (FileSpec::parse(text), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(CommandError::Usage(told)), Err(part)) => {
                    assert!(told.contains(part), "{told}");
                }
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }
}
