//! Reads text files such as `etc/passwd` of a root file system that is not mounted, by searching its
//! layers as overlayfs does.

use std::{io::Read as _, path::Path};

use super::merged::{MergedTree, ResolvedPath};
use crate::{RootfsLayers, StoreError};

/// Maximum size of a file that is read.
const LONGEST: u64 = 1 << 20;

impl RootfsLayers {
    /// The text of a file, or `None` if there is no regular file at that path. Links are only
    /// followed inside the root file system. Invalid UTF-8 is replaced. Blocks.
    ///
    /// # Errors
    /// The file has more than 1 MiB, or the disk fails.
    pub fn read_text(&self, path: &Path) -> Result<Option<String>, StoreError> {
        let failed = |source| StoreError::ImageFile {
            path: path.to_owned(),
            source,
        };
        let layers: Vec<_> = [&self.upper].into_iter().chain(&self.lower).collect();
        let tree = MergedTree::open(&layers)?;
        let ResolvedPath::Other(file) = tree.reach(path).map_err(failed)? else {
            return Ok(None);
        };
        let Some(file) = tree.regular_file(&file).map_err(failed)? else {
            return Ok(None);
        };
        let mut text = Vec::new();
        file.take(LONGEST + 1)
            .read_to_end(&mut text)
            .map_err(failed)?;
        if text.len() as u64 > LONGEST {
            return Err(StoreError::LongFile {
                path: path.to_owned(),
                limit: LONGEST,
            });
        }
        Ok(Some(String::from_utf8_lossy(&text).into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;
    use crate::test_image::directory;

    struct Root(tempfile::TempDir);

    impl Root {
        fn new() -> Self {
            let dir = directory();
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
            self.try_read().unwrap()
        }

        fn try_read(&self) -> Result<Option<String>, StoreError> {
            let layer = |name: &str| self.0.path().join(name);
            let layers = RootfsLayers {
                lower: vec![layer("top"), layer("base")],
                upper: layer("upper"),
                work: layer("work"),
            };
            layers.read_text(Path::new("etc/passwd"))
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
        root.put("base/usr/passwd", "inside");
        fs::create_dir(root.0.path().join("top/usr")).unwrap();
        fs::create_dir(root.0.path().join("base/usr/share")).unwrap();
        symlink("/usr/share/../passwd", &link).unwrap();
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

    #[test]
    fn nothing_but_short_regular_files_is_read() {
        let root = Root::new();
        let file = root.0.path().join("top/etc/passwd");
        fs::create_dir(&file).unwrap();
        assert_eq!(root.read(), None, "a directory");
        fs::remove_dir(&file).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &file, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert_eq!(root.read(), None, "a pipe, which nobody writes to");
        fs::remove_file(&file).unwrap();
        fs::File::create(&file).unwrap().set_len(LONGEST).unwrap();
        assert!(root.read().is_some());
        let longer = fs::File::options().write(true).open(&file).unwrap();
        longer.set_len(LONGEST + 1).unwrap();
        let error = root.try_read().unwrap_err();
        assert!(matches!(error, StoreError::LongFile { .. }), "{error}");
        fs::remove_dir_all(root.0.path().join("top/etc")).unwrap();
        root.put("top/etc", "a file in a directory's place");
        assert_eq!(root.read(), None);
    }
}
