//! Tests of `project_quota`.

use std::{
    fs::{self, File},
    io::Write as _,
};

use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use super::*;

const PROJECT: ProjectId = ProjectId(1_048_999);
/// `XFS_SUPER_MAGIC` of `linux/magic.h`.
const XFS: rustix::fs::FsWord = 0x5846_5342;

#[test]
fn a_directory_without_a_project_is_added_up() {
    let dir = tempfile::Builder::new()
        .prefix("rbt-host-")
        .tempdir()
        .unwrap();
    fs::write(dir.path().join("file"), [1; 10_000]).unwrap();
    let open = File::open(dir.path()).unwrap();
    assert_eq!(of_directory(&open).unwrap(), None);
    let found = usage_of_tree(dir.path(), true).unwrap();
    assert_eq!(found, tree_usage::of(dir.path()).unwrap());
    assert_eq!(found.inodes, 2);
    assert_eq!(usage_of_tree(dir.path(), false).unwrap(), found);
    let missing = usage_of_tree(&dir.path().join("missing"), true).unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
}

#[test]
fn the_kernel_counts_a_project_and_bounds_it() {
    let Some(place) = rubelet_needs::project_quotas() else {
        return;
    };
    let builder = tempfile::Builder::new()
        .prefix("rbt-host-")
        .tempdir_in(place);
    let scratch = builder.unwrap();
    let path = scratch.path().join("tree");
    fs::create_dir(&path).unwrap();
    let dir = File::open(&path).unwrap();
    assert_eq!(support(&dir).unwrap(), ProjectSupport::Bounded);
    assert_eq!(of_directory(&dir).unwrap(), None);
    assert_eq!(usage(&dir, PROJECT).unwrap(), Some(TreeUsage::default()));
    set_directory(&dir, PROJECT).unwrap();
    assert_eq!(of_directory(&dir).unwrap(), Some(PROJECT));

    fs::create_dir(path.join("below")).unwrap();
    let mut file = File::create(path.join("below/file")).unwrap();
    file.write_all(&[1; 100_000]).unwrap();
    file.sync_all().unwrap();
    let found = usage_of_tree(&path, true).unwrap();
    assert_eq!(found, tree_usage::of(&path).unwrap());
    assert_eq!(found.inodes, 3);
    assert!(found.bytes >= 100_000, "{found:?}");
    // The project of a directory that is above is nothing of its own.
    let below = File::open(path.join("below")).unwrap();
    assert_eq!(of_directory(&below).unwrap(), None);
    assert_eq!(usage_of_tree(&path.join("below"), true).unwrap().inodes, 2);

    // A removed file that is still open takes space, which nobody finds by looking at names.
    fs::remove_file(path.join("below/file")).unwrap();
    assert_eq!(usage_of_tree(&path, true).unwrap(), found);
    assert_eq!(usage_of_tree(&path, false).unwrap().inodes, 2);

    set_bound(&dir, PROJECT, Some(found.bytes + (64 << 10))).unwrap();
    // With it, as root of the machine, nothing is bounded.
    let mut mine = capabilities(None).unwrap();
    mine.effective.remove(CapabilitySet::SYS_RESOURCE);
    set_capabilities(None, mine).unwrap();
    let refused = fs::write(path.join("large"), vec![1; 1 << 20]).unwrap_err();
    // XFS answers as if the disk was full.
    let expected = match rustix::fs::fstatfs(&dir).unwrap().f_type {
        XFS => libc::ENOSPC,
        _ => libc::EDQUOT,
    };
    assert_eq!(refused.raw_os_error(), Some(expected));
    set_bound(&dir, PROJECT, None).unwrap();
    fs::write(path.join("large"), vec![1; 1 << 20]).unwrap();
}
