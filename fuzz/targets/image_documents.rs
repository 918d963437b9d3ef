//! What a registry says: manifests, indexes, configurations, and the names that people give images.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rubelet_images::manifest::{Document, choose, parse, parse_config};
use rubelet_images::{Platform, Reference};

fuzz_target!(|data: &[u8]| {
    if let Ok(Document::Index(manifests)) = parse(data, None) {
        let chosen = choose(&manifests, &Platform::host());
        assert!(chosen.len() <= manifests.len());
    }
    let _ = parse_config(data);
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(reference) = text.parse::<Reference>()
    {
        let again: Reference = reference
            .to_string()
            .parse()
            .expect("a name that was understood is understood again");
        assert_eq!(again.to_string(), reference.to_string());
    }
});
