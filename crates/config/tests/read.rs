//! Each field that is documented to have an effect is read by some code.

use rubelet_config::field::{Effect, Field, Kind};
use rubelet_config::{KubeletConfiguration, RubeletOptions};
use std::fs;
use std::path::{Path, PathBuf};

/// Fields that work as in the kubelet, where they have no effect or one in this crate only.
const NOT_READ: &[&str] = &[
    "hairpinMode",
    "iptablesDropBit",
    "iptablesMasqueradeBit",
    // Whatever it says, the kernel is asked.
    "kernelMemcgNotification",
    "mergeDefaultEvictionSettings",
    "runOnce",
    "streamingConnectionIdleTimeout",
];

/// Files of this crate that use fields, other than tables and validation.
const USERS: &[&str] = &[
    "server.rs",
    "endpoint.rs",
    "resolve.rs",
    "rubelet_options.rs",
];

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("the directory is there") {
        let path = entry.expect("it can be listed").path();
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.unwrap_or_default();
        if path.is_dir() {
            if !matches!(name, "tests" | "target" | "testbed" | "sim-api") {
                sources(&path, found);
            }
        } else if name.ends_with(".rs") && name != "tests.rs" {
            found.push(path);
        }
    }
}

/// The code of the product, without its tests.
fn code() -> String {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    sources(own.parent().expect("the directory of crates"), &mut paths);
    let read = |path: &PathBuf| fs::read_to_string(path).expect("a source is text");
    let counts = |path: &&PathBuf| match path.strip_prefix(own) {
        Ok(inside) => USERS
            .iter()
            .any(|name| inside == Path::new("src").join(name)),
        Err(_) => true,
    };
    let texts = paths.iter().filter(counts).map(read);
    let texts = texts.map(|text| match text.find("#[cfg(test)]\nmod tests {") {
        Some(end) => text[..end].to_owned(),
        None => text,
    });
    texts.collect()
}

/// Whether the code has `.ident` as a whole word.
fn reads(code: &str, ident: &str) -> bool {
    let needle = format!(".{ident}");
    code.match_indices(&needle).any(|(at, _)| {
        let next = code[at + needle.len()..].chars().next();
        next.is_none_or(|next| !next.is_alphanumeric() && !matches!(next, '_' | '('))
    })
}

fn unread(fields: &'static [Field], code: &str, found: &mut Vec<&'static str>) {
    for field in fields {
        let claimed = !matches!(field.effect, Effect::NotYet | Effect::Differs(_));
        if claimed && !NOT_READ.contains(&field.name) && !reads(code, field.ident) {
            found.push(field.name);
        }
        if let Kind::Section(inner) = field.kind {
            unread(inner, code, found);
        }
    }
}

#[test]
fn each_field_with_an_effect_is_read_by_some_code() {
    let code = code();
    let mut found = Vec::new();
    unread(KubeletConfiguration::FIELDS, &code, &mut found);
    unread(RubeletOptions::FIELDS, &code, &mut found);
    assert_eq!(found, [""; 0], "nothing reads these fields");
}
