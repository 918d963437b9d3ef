//! Files of a container's root file system that is not mounted: its layers are looked through as
//! overlayfs does. Links are followed inside of the root only, and nothing but plain files is read:
//! the layers are a stranger's.

use std::{
    collections::VecDeque,
    ffi::OsString,
    fs,
    io::Read,
    os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt},
    path::{Component, Path, PathBuf},
};

use rubelet_images::RootfsLayers;

use crate::fault::{Fault, Outcome};

/// Longest file that is read.
const LONGEST: u64 = 1 << 20;

/// Most links that are followed on one path, as in the kernel.
const MOST_LINKS: usize = 40;

/// The text of a file, or `None` if there is no such file. What is not UTF-8 is replaced. Blocks.
pub(crate) fn read(layers: &RootfsLayers, path: &str) -> Outcome<Option<String>> {
    let Some(file) = find(layers, Path::new(path))? else {
        return Ok(None);
    };
    let failed =
        |error: std::io::Error| Fault::because(format!("cannot read /{path} of the image"), &error);
    let mut text = Vec::new();
    let file = fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(&file)
        .map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Ok(None);
    }
    if metadata.len() > LONGEST {
        return Err(Fault::invalid(format!(
            "/{path} of the image has {} bytes, more than the {LONGEST} that are read",
            metadata.len()
        )));
    }
    file.take(LONGEST).read_to_end(&mut text).map_err(failed)?;
    Ok(Some(String::from_utf8_lossy(&text).into_owned()))
}

/// What one layer says of a path.
enum Said {
    /// It is there.
    Here(PathBuf),
    /// It is a link, or is below one: the path to look for instead.
    Elsewhere(PathBuf),
    /// It is not here, and may be below.
    Below,
    /// It is not here, and what is below is hidden.
    Nowhere,
}

fn find(layers: &RootfsLayers, path: &Path) -> Outcome<Option<PathBuf>> {
    let mut wanted = normal(path);
    for _ in 0..MOST_LINKS {
        let mut elsewhere = None;
        let all = [&layers.upper].into_iter().chain(&layers.lower);
        for layer in all {
            let said = ask(layer, &wanted).map_err(|error| {
                Fault::because(format!("cannot look into {}", layer.display()), &error)
            })?;
            match said {
                Said::Here(file) => return Ok(Some(file)),
                Said::Elsewhere(path) => {
                    elsewhere = Some(path);
                    break;
                }
                Said::Below => {}
                Said::Nowhere => return Ok(None),
            }
        }
        match elsewhere {
            Some(path) => wanted = path,
            None => return Ok(None),
        }
    }
    Ok(None)
}

fn ask(layer: &Path, wanted: &Path) -> std::io::Result<Said> {
    let mut here = layer.to_owned();
    let mut walked = PathBuf::new();
    let mut hides = false;
    let mut rest: VecDeque<OsString> = wanted.iter().map(OsString::from).collect();
    while let Some(name) = rest.pop_front() {
        here.push(&name);
        let metadata = match fs::symlink_metadata(&here) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(if hides { Said::Nowhere } else { Said::Below });
            }
            Err(error) => return Err(error),
        };
        let kind = metadata.file_type();
        // A whiteout.
        if kind.is_char_device() && metadata.rdev() == 0 {
            return Ok(Said::Nowhere);
        }
        if kind.is_symlink() {
            let mut target = walked.join(fs::read_link(&here)?);
            target.extend(rest);
            return Ok(Said::Elsewhere(normal(&target)));
        }
        if rest.is_empty() {
            return Ok(Said::Here(here));
        }
        if !kind.is_dir() {
            return Ok(Said::Nowhere);
        }
        hides |= is_opaque(&here);
        walked.push(name);
    }
    Ok(Said::Nowhere)
}

fn is_opaque(dir: &Path) -> bool {
    let mut value = [0u8; 4];
    rustix::fs::lgetxattr(dir, "trusted.overlay.opaque", &mut value)
        .is_ok_and(|length| value.get(..length) == Some(b"y"))
}

/// The path below the root, without `.` and `..`; `..` of the root is the root.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => normal.push(name),
            Component::ParentDir => {
                normal.pop();
            }
            Component::RootDir => normal.clear(),
            Component::CurDir | Component::Prefix(_) => {}
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Root(tempfile::TempDir);

    impl Root {
        fn new() -> Self {
            let dir = tempfile::Builder::new()
                .prefix("rubelet-t")
                .tempdir()
                .unwrap();
            for layer in ["upper", "top", "base"] {
                fs::create_dir_all(dir.path().join(layer).join("etc")).unwrap();
            }
            Self(dir)
        }

        fn put(&self, path: &str, text: &str) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn read(&self) -> Option<String> {
            let layer = |name: &str| self.0.path().join(name);
            let layers = RootfsLayers {
                lower: vec![layer("top"), layer("base")],
                upper: layer("upper"),
                work: layer("work"),
            };
            read(&layers, "etc/passwd").unwrap()
        }
    }

    #[test]
    fn the_topmost_file_wins() {
        let root = Root::new();
        assert_eq!(root.read(), None);
        root.put("base/etc/passwd", "base");
        assert_eq!(root.read().as_deref(), Some("base"));
        root.put("top/etc/passwd", "top");
        assert_eq!(root.read().as_deref(), Some("top"));
    }

    #[test]
    fn what_is_removed_in_a_layer_is_not_found_below_it() {
        let root = Root::new();
        root.put("base/etc/passwd", "base");
        let whiteout = root.0.path().join("top/etc/passwd");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let kind = rustix::fs::FileType::CharacterDevice;
        rustix::fs::mknodat(rustix::fs::CWD, &whiteout, kind, mode, 0).unwrap();
        assert_eq!(root.read(), None);
    }

    #[test]
    fn links_stay_inside_of_the_root() {
        let root = Root::new();
        let link = root.0.path().join("top/etc/passwd");
        symlink("/usr/share/../passwd", &link).unwrap();
        root.put("base/usr/passwd", "inside");
        assert_eq!(root.read().as_deref(), Some("inside"));
        fs::remove_file(&link).unwrap();
        symlink("../../../../../etc/shadow", &link).unwrap();
        assert_eq!(
            root.read(),
            None,
            "the host's file has nothing to do with it"
        );
        fs::remove_file(&link).unwrap();
        symlink("passwd", &link).unwrap();
        assert_eq!(root.read(), None, "a loop ends");
    }
}
