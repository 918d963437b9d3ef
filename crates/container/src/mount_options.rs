//! Parses the mount options of the OCI specification into the kernel's flags.

use rubelet_oci::NO_SYMLINKS;

use crate::sys::mount_attr::MountAttr;

/// The parsed options of one mount.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct MountOptions<'a> {
    /// Flags of the mount itself.
    pub(crate) attr: MountAttr,
    /// Flags of it and of all mounts below it.
    pub(crate) recursive_attr: MountAttr,
    /// Propagation (MS_PRIVATE…); true if it is recursive.
    pub(crate) propagation: Option<(u64, bool)>,
    /// A bind mount is recursive.
    pub(crate) rbind: bool,
    /// The mount is ID-mapped; true if recursively.
    pub(crate) idmap: Option<bool>,
    /// Symbolic links in the destination are refused.
    pub(crate) no_symlinks: bool,
    /// Options of the file system: `name` or `name=value`.
    pub(crate) data: Vec<&'a str>,
}

/// A flag that is set or cleared.
enum Flag {
    Set(u64),
    Clear(u64),
    /// A value of the access time field.
    Atime(u64),
}

impl Flag {
    fn apply(&self, attr: &mut MountAttr) {
        match self {
            Self::Set(bits) => {
                attr.set |= bits;
                attr.clear &= !bits;
            }
            Self::Clear(bits) => {
                attr.clear |= bits;
                attr.set &= !bits;
            }
            Self::Atime(value) => {
                // mount_setattr(2): to set a value of this field, all of the field must be cleared.
                attr.clear |= libc::MOUNT_ATTR__ATIME;
                attr.set = (attr.set & !libc::MOUNT_ATTR__ATIME) | value;
            }
        }
    }
}

fn flag(name: &str) -> Option<Flag> {
    Some(match name {
        "ro" => Flag::Set(libc::MOUNT_ATTR_RDONLY),
        "rw" => Flag::Clear(libc::MOUNT_ATTR_RDONLY),
        "nosuid" => Flag::Set(libc::MOUNT_ATTR_NOSUID),
        "suid" => Flag::Clear(libc::MOUNT_ATTR_NOSUID),
        "nodev" => Flag::Set(libc::MOUNT_ATTR_NODEV),
        "dev" => Flag::Clear(libc::MOUNT_ATTR_NODEV),
        "noexec" => Flag::Set(libc::MOUNT_ATTR_NOEXEC),
        "exec" => Flag::Clear(libc::MOUNT_ATTR_NOEXEC),
        "nodiratime" => Flag::Set(libc::MOUNT_ATTR_NODIRATIME),
        "diratime" => Flag::Clear(libc::MOUNT_ATTR_NODIRATIME),
        "nosymfollow" => Flag::Set(libc::MOUNT_ATTR_NOSYMFOLLOW),
        "symfollow" => Flag::Clear(libc::MOUNT_ATTR_NOSYMFOLLOW),
        "noatime" => Flag::Atime(libc::MOUNT_ATTR_NOATIME),
        "strictatime" => Flag::Atime(libc::MOUNT_ATTR_STRICTATIME),
        "relatime" | "atime" | "nostrictatime" | "norelatime" => {
            Flag::Atime(libc::MOUNT_ATTR_RELATIME)
        }
        _ => return None,
    })
}

fn propagation(name: &str) -> Option<(u64, bool)> {
    let (name, recursive) = match name.strip_prefix('r') {
        Some(rest) => (rest, true),
        None => (name, false),
    };
    let kind = match name {
        "private" => libc::MS_PRIVATE,
        "slave" => libc::MS_SLAVE,
        "shared" => libc::MS_SHARED,
        "unbindable" => libc::MS_UNBINDABLE,
        _ => return None,
    };
    Some((kind, recursive))
}

impl<'a> MountOptions<'a> {
    /// Reads the options of a mount.
    pub(crate) fn read(options: &'a [String]) -> Self {
        let mut read = Self::default();
        for option in options {
            let option = option.as_str();
            match option {
                "defaults" | "bind" | "loud" | "norbind" => {}
                NO_SYMLINKS => read.no_symlinks = true,
                "rbind" => read.rbind = true,
                "idmap" => read.idmap = Some(false),
                "ridmap" => read.idmap = Some(true),
                _ => read.read_other(option),
            }
        }
        read
    }

    fn read_other(&mut self, option: &'a str) {
        // Whole names first: `relatime` and `rw` begin with an `r` that is no prefix.
        if let Some(flag) = flag(option) {
            flag.apply(&mut self.attr);
        } else if let Some(propagation) = propagation(option) {
            self.propagation = Some(propagation);
        } else if let Some(flag) = option.strip_prefix('r').and_then(flag) {
            flag.apply(&mut self.recursive_attr);
        } else {
            self.data.push(option);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(options: &[&str]) -> (MountAttr, MountAttr, Option<(u64, bool)>, Vec<String>) {
        let options: Vec<String> = options.iter().map(|&one| one.to_owned()).collect();
        let read = MountOptions::read(&options);
        let data = read.data.iter().map(|&one| one.to_owned()).collect();
        (read.attr, read.recursive_attr, read.propagation, data)
    }

    #[test]
    fn the_last_of_two_contrary_options_counts() {
        let (attr, ..) = read(&["ro", "rw"]);
        assert_eq!((attr.set, attr.clear), (0, libc::MOUNT_ATTR_RDONLY));
        let (attr, ..) = read(&["noatime", "strictatime"]);
        assert_eq!(attr.set, libc::MOUNT_ATTR_STRICTATIME);
        assert_eq!(attr.clear, libc::MOUNT_ATTR__ATIME);
    }

    #[test]
    fn recursive_options_are_not_mistaken() {
        // `relatime` and `rw` begin with an r of their own.
        let (attr, recursive, ..) = read(&["relatime", "rw"]);
        assert_eq!(
            attr.clear,
            libc::MOUNT_ATTR__ATIME | libc::MOUNT_ATTR_RDONLY
        );
        assert!(recursive.is_empty());
        let (attr, recursive, ..) = read(&["rro", "rnosuid"]);
        assert!(attr.is_empty());
        assert_eq!(
            recursive.set,
            libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID
        );
    }

    #[test]
    fn what_is_no_flag_is_for_the_file_system() {
        let (_, _, propagation, data) = read(&["rslave", "size=64k", "mode=755", "newinstance"]);
        assert_eq!(propagation, Some((libc::MS_SLAVE, true)));
        assert_eq!(data, ["size=64k", "mode=755", "newinstance"]);
    }
}
