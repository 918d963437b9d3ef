//! Tests of `store`.

use super::{PairStore, StoreError};
use crate::certificates::pair::Pair;
use crate::certificates::serving::self_signed;
use jiff::Timestamp;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

fn pair(name: &str) -> Pair {
    self_signed(name, NOW).unwrap()
}

fn mode(path: &std::path::Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn the_newest_certificate_is_the_current_one() {
    let directory = tempfile::tempdir().unwrap();
    let store = PairStore::new(&directory.path().join("pki"), "kubelet-client");
    assert!(store.current().unwrap().is_none());
    store.update(&pair("one"), NOW).unwrap();
    let later = Timestamp::constant(1_800_000_100, 0);
    store.update(&pair("two"), later).unwrap();
    let current = store.current().unwrap().unwrap();
    assert!(current.leaf().dns_names.contains("two"));
    let target = fs::read_link(store.current_path()).unwrap();
    assert_eq!(
        target,
        directory
            .path()
            .join("pki/kubelet-client-2027-01-15-08-01-40.pem")
    );
    assert_eq!(mode(&target), 0o600);
    assert_eq!(
        fs::read_dir(directory.path().join("pki")).unwrap().count(),
        3
    );
}

#[test]
fn an_update_that_was_cut_short_is_finished() {
    let directory = tempfile::tempdir().unwrap();
    let store = PairStore::new(directory.path(), "kubelet-client");
    store.update(&pair("one"), NOW).unwrap();
    let target = fs::read_link(store.current_path()).unwrap();
    fs::remove_file(store.current_path()).unwrap();
    symlink(target, store.updated_path()).unwrap();
    assert!(store.current().unwrap().is_some());
    assert!(store.current_path().exists() && !store.updated_path().exists());
}

#[test]
fn a_file_in_the_place_of_the_link_is_not_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let store = PairStore::new(directory.path(), "kubelet-client");
    fs::write(store.current_path(), "mine").unwrap();
    let refused = store.update(&pair("one"), NOW);
    assert!(matches!(refused, Err(StoreError::NoLink { .. })));
    assert_eq!(fs::read(store.current_path()).unwrap(), b"mine");
    assert!(matches!(store.current(), Err(StoreError::Pair { .. })));
}

#[test]
fn certificate_and_key_in_two_files_are_read_too() {
    let directory = tempfile::tempdir().unwrap();
    let store = PairStore::new(directory.path(), "kubelet-client");
    let pair = pair("two-files");
    fs::write(store.path(".crt"), pair.chain_pem()).unwrap();
    fs::write(store.path(".key"), pair.key_pem()).unwrap();
    assert!(store.current().unwrap().is_some());
}

#[test]
fn the_key_of_a_request_is_kept_until_it_is_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let store = PairStore::new(directory.path(), "kubelet-client");
    let first = store.pending_key().unwrap();
    let path = directory.path().join("kubelet-client.key.tmp");
    assert_eq!(mode(&path), 0o600);
    assert_eq!(store.pending_key().unwrap().public(), first.public());
    fs::write(&path, "no key").unwrap();
    assert_ne!(store.pending_key().unwrap().public(), first.public());
    store.drop_pending_key().unwrap();
    store.drop_pending_key().unwrap();
    assert!(!path.exists());
}
