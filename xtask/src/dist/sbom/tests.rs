//! Tests of `sbom`.

use std::collections::BTreeSet;
use std::path::Path;

use super::*;
use crate::dist::{lockfile, packages};

const SUBJECT: Subject<'_> = Subject {
    root: "rubelet",
    target: "x86_64-unknown-linux-gnu",
    rustc: "rustc 1.0.0",
    commit: "0123456789abcdef0123456789abcdef01234567",
    date: "2026-01-01T00:00:00Z",
    binary: "00",
};

#[test]
fn the_bill_of_materials_is_complete_and_valid() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let linked = packages::linked(workspace, "rubelet", SUBJECT.target).unwrap();
    let bill = document(&SUBJECT, &linked);
    check(&bill);

    let lock = std::fs::read_to_string(workspace.join("Cargo.lock")).unwrap();
    let lock = lockfile::checksums(&lock);
    let components = bill["components"].as_array().unwrap();
    assert_eq!(components.len() + 1, linked.len());
    for component in components {
        let text = |key: &str| component[key].as_str().unwrap().to_owned();
        let checksum = &lock[&(text("name"), text("version"))];
        let content = component["hashes"][0]["content"].as_str();
        assert_eq!(content, checksum.as_deref(), "{component}");
        let ours = text("name").starts_with("rubelet-");
        assert_eq!(checksum.is_none(), ours, "{component}");
    }
    let has = |name: &str| components.iter().any(|component| component["name"] == name);
    for name in ["aws-lc-sys", "zstd-sys", "tokio", "rubelet-container"] {
        assert!(has(name), "{name}");
    }
    for name in [
        "proptest",
        "cc",
        "serde_derive",
        "windows-sys",
        "rubelet-sim",
        "xtask",
    ] {
        assert!(!has(name), "{name}");
    }
}

#[test]
fn the_same_release_has_the_same_bill() {
    let packages = [
        packages::tests::package("rubelet", &["a"]),
        packages::tests::package("a", &[]),
    ];
    let bill = document(&SUBJECT, &packages);
    assert_eq!(bill, document(&SUBJECT, &packages));
    check(&bill);
    let other = Subject {
        commit: "f",
        ..SUBJECT
    };
    let other = document(&other, &packages);
    assert_ne!(bill["serialNumber"], other["serialNumber"]);
    assert_eq!(bill["metadata"]["timestamp"], "2026-01-01T00:00:00Z");
}

#[test]
fn build_metadata_of_a_version_is_encoded_in_a_package_url() {
    let id = ("zstd-sys".to_owned(), "2.0.1+zstd.1.5.7".to_owned());
    assert_eq!(purl(&id), "pkg:cargo/zstd-sys@2.0.1%2Bzstd.1.5.7");
}

/// The rules of CycloneDX 1.5 for the parts that are used: required keys, permitted words, formats
/// of numbers and digests, unique names, no dangling references.
fn check(bill: &Value) {
    assert_eq!(bill["bomFormat"], "CycloneDX");
    assert_eq!(bill["specVersion"], "1.5");
    assert_eq!(bill["version"], 1);
    let serial = bill["serialNumber"].as_str().unwrap();
    let uuid = serial.strip_prefix("urn:uuid:").unwrap();
    let lengths: Vec<_> = uuid.split('-').map(str::len).collect();
    assert_eq!(lengths, [8, 4, 4, 4, 12], "{serial}");
    assert!(
        uuid.bytes()
            .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f' | b'-'))
    );
    assert_eq!((&uuid[14..15], &uuid[19..20]), ("8", "8"), "{serial}");

    let top = &bill["metadata"]["component"];
    assert_eq!(top["type"], "application");
    let components = bill["components"].as_array().unwrap();
    let mut references = BTreeSet::new();
    for component in components.iter().chain([top]) {
        let text = |key: &str| component[key].as_str().unwrap();
        assert!(["library", "application"].contains(&text("type")));
        assert_eq!(text("scope"), "required");
        assert!(!text("name").is_empty() && !text("version").is_empty());
        assert!(text("purl").starts_with("pkg:cargo/") && !text("purl").contains('+'));
        assert!(references.insert(text("bom-ref")), "{component}");
        let licences = component["licenses"].as_array().unwrap();
        assert_eq!(licences.len(), 1, "one licence expression");
        let expression = licences[0]["expression"].as_str().unwrap();
        assert!(
            !expression.is_empty() && !expression.contains('/'),
            "{expression}"
        );
        if component == top {
            continue;
        }
        for hash in component["hashes"].as_array().into_iter().flatten() {
            assert_eq!(hash["alg"], "SHA-256");
            let content = hash["content"].as_str().unwrap();
            assert_eq!(content.len(), 64);
            assert!(content.bytes().all(|byte| byte.is_ascii_hexdigit()));
        }
    }
    let mut users = BTreeSet::new();
    for dependency in bill["dependencies"].as_array().unwrap() {
        let user = dependency["ref"].as_str().unwrap();
        assert!(references.contains(user) && users.insert(user), "{user}");
        let mut seen = BTreeSet::new();
        for used in dependency["dependsOn"].as_array().unwrap() {
            let used = used.as_str().unwrap();
            assert!(
                references.contains(used) && seen.insert(used),
                "{user} -> {used}"
            );
        }
    }
    assert_eq!(users, references, "each component lists what it links");
}
