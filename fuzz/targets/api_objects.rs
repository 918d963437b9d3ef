//! Objects of the API server: the lines of a watch, pods, and their statuses.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use rubelet_api::{
    parse::api_pod,
    wire::{WireContext, status_from_json, status_json},
};
use rubelet_kube::Object;
use rubelet_yaml::read_json;
use serde_json::Value;

#[path = "../../crates/kube/src/watch/lines.rs"]
mod lines;

/// The longest line.
const LIMIT: usize = 8 * 1024;

fuzz_target!(|data: &[u8]| {
    let Some((cut, stream)) = data.split_first() else {
        return;
    };
    let whole = split(std::iter::once(stream));
    let pieces = split(stream.chunks(usize::from(*cut).max(1)));
    assert_eq!(whole, pieces, "pieces make no difference");
    for line in whole.iter().flatten() {
        assert!(line.len() <= LIMIT);
        if let Ok(read) = read_json::<Object>(line) {
            object(read.value.0);
        }
    }
});

/// The lines of a stream; `None` behind one that is too long.
fn split<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<Option<Vec<u8>>> {
    let mut lines = lines::Lines::default();
    let mut found = Vec::new();
    for piece in pieces {
        lines.feed(Bytes::copy_from_slice(piece));
        loop {
            match lines.next(LIMIT, <[u8]>::to_vec) {
                Ok(Some(line)) => found.push(Some(line.trim_ascii().to_vec())),
                Ok(None) => break,
                Err(lines::TooLong) => {
                    found.push(None);
                    return found;
                }
            }
        }
    }
    found.retain(|line| line.as_ref().is_none_or(|line| !line.is_empty()));
    found
}

fn object(value: Value) {
    assert!(value["metadata"].get("managedFields").is_none());
    if let Some(status) = status_from_json(&value["status"]) {
        let context = WireContext::default();
        let written = status_json(
            &status,
            rubelet_api::resources::QosClass::BestEffort,
            &context,
        );
        let again = status_from_json(&written).expect("what the agent writes it reads");
        let twice = status_json(
            &again,
            rubelet_api::resources::QosClass::BestEffort,
            &context,
        );
        assert_eq!(twice, written, "a status is the same after it was kept");
    }
    let Ok(parsed) = api_pod(value, "node") else {
        return;
    };
    // Pods are kept on disk for a start without the API server.
    let kept: Value = serde_json::from_str(&parsed.pod.json).expect("it was written as JSON");
    let again = api_pod(kept, "node").expect("what is kept is read");
    assert_eq!(again.pod, parsed.pod);
    assert_eq!(again.unknown_fields, parsed.unknown_fields);
    assert_eq!(again.unsupported, parsed.unsupported);
    assert_eq!(again.left_out, parsed.left_out);
}
