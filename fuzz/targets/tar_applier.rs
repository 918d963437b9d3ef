//! A layer's archive, applied to a directory: nothing outside of that directory changes, whatever it says.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use rubelet_images::unpack::{UnpackLimits, apply, unpack};

/// Small, so that a single archive does not fill the machine.
const LIMITS: UnpackLimits = UnpackLimits {
    entries: 200,
    bytes: 1 << 20,
    ratio: 50,
    ratio_from: 1 << 16,
    depth: 20,
    spare_bytes: 0,
    spare_inodes: 0,
};

fuzz_target!(|data: &[u8]| {
    let place = tempfile::tempdir().expect("a temporary directory can be made");
    let target = place.path().join("fs");
    std::fs::create_dir(&target).expect("a directory can be made in it");
    std::fs::write(place.path().join("beside"), "untouched").expect("and a file");
    std::fs::create_dir(place.path().join("directory")).expect("and a directory beside it");
    // Compressed ones say so by their first bytes.
    if data.starts_with(b"\x1f\x8b") || data.starts_with(b"\x28\xb5\x2f\xfd") {
        let _ = unpack(
            data,
            (
                rubelet_images::digest::Algorithm::Sha256,
                rubelet_images::digest::Algorithm::Sha256,
            ),
            &target,
            &LIMITS,
        );
    } else {
        let _ = apply(data, &target, &LIMITS);
    }
    assert_eq!(
        std::fs::read(place.path().join("beside")).ok().as_deref(),
        Some(b"untouched".as_slice())
    );
    assert_eq!(names(place.path()), ["beside", "directory", "fs"]);
    assert!(names(&place.path().join("directory")).is_empty());
});

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("the directory is still there");
    let mut names: Vec<_> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}
