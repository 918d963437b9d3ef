//! The files that a container sends: nothing outside of the destination changes, whatever they are.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use rubelet_files::{Attributes, Destination};

fuzz_target!(|data: &[u8]| {
    let place = tempfile::tempdir().expect("a temporary directory can be made");
    let target = place.path().join("to");
    std::fs::write(place.path().join("beside"), "untouched").expect("a file can be made in it");
    let destination = Destination::local(&target).expect("its directory is there");
    let _ = destination.receive(data, Attributes::Restricted);
    assert_eq!(
        std::fs::read(place.path().join("beside")).ok().as_deref(),
        Some(b"untouched".as_slice())
    );
    assert!(
        names(place.path())
            .iter()
            .all(|name| ["beside", "to"].contains(&&**name))
    );
});

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("the directory is still there");
    entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect()
}
