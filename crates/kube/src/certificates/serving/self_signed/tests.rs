//! Tests of `self_signed`.

use super::SelfSigned;
use crate::clock::WallClock;
use jiff::Timestamp;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

const DAY: i64 = 24 * 3600;

fn own(directory: &Path, name: &str, days: i64) -> SelfSigned {
    let now = Timestamp::from_second(1_800_000_000 + days * DAY).unwrap();
    let clock: WallClock = Arc::new(move || now);
    SelfSigned::new(directory, name, &clock)
}

#[test]
fn the_certificate_is_kept_over_restarts_until_it_expires() {
    let directory = tempfile::tempdir().unwrap();
    let pki = directory.path().join("pki");
    let first = own(&pki, "node", 0).open().unwrap();
    assert_eq!(first.leaf().dns_names.first().unwrap(), "node");
    let mode = |name: &str| {
        let path = pki.join(name);
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    assert_eq!((mode("kubelet.crt"), mode("kubelet.key")), (0o644, 0o600));
    let again = own(&pki, "node", 100).open().unwrap();
    assert_eq!(again.certificate().der(), first.certificate().der());
    let later = own(&pki, "node", 400).open().unwrap();
    assert_ne!(later.certificate().der(), first.certificate().der());
}

#[test]
fn it_is_renewed_in_its_last_month_and_never_when_it_is_somebody_elses() {
    let directory = tempfile::tempdir().unwrap();
    let pair = own(directory.path(), "node", 0).open().unwrap();
    assert!(
        own(directory.path(), "node", 300)
            .renewed(Some(pair.certificate()))
            .is_none()
    );
    assert!(
        own(directory.path(), "other", 340)
            .renewed(Some(pair.certificate()))
            .is_none()
    );
    let renewed = own(directory.path(), "node", 340).renewed(Some(pair.certificate()));
    assert!(renewed.unwrap().certificate().expires() > pair.certificate().expires());
}

#[test]
fn what_is_damaged_is_moved_aside() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("kubelet.crt"), "no certificate").unwrap();
    own(directory.path(), "node", 0).open().unwrap();
    let aside = directory.path().join("kubelet.crt.damaged");
    assert_eq!(fs::read_to_string(aside).unwrap(), "no certificate");
}

#[test]
fn a_node_may_be_called_by_its_address() {
    let directory = tempfile::tempdir().unwrap();
    let pair = own(directory.path(), "10.0.0.7", 0).open().unwrap();
    let address = pair.leaf().addresses.first().unwrap();
    assert_eq!(address.to_string(), "10.0.0.7");
}
