//! The bill of materials, in CycloneDX 1.5 as JSON.

use serde_json::{Value, json};

use super::checksums::sha256;
use super::lockfile::Id;
use super::packages::Package;

/// The subject of the bill.
pub(super) struct Subject<'a> {
    /// The package of the binary.
    pub(super) root: &'a str,
    /// The target of the build.
    pub(super) target: &'a str,
    /// The compiler.
    pub(super) rustc: &'a str,
    /// The commit.
    pub(super) commit: &'a str,
    /// The time of the commit, in RFC 3339.
    pub(super) date: &'a str,
    /// SHA-256 of the binary.
    pub(super) binary: &'a str,
}

/// The bill of the binary that links `packages`, including the binary's own.
pub(super) fn document(subject: &Subject<'_>, packages: &[Package]) -> Value {
    let (own, linked): (Vec<_>, Vec<_>) = packages
        .iter()
        .partition(|package| package.id.0 == subject.root);
    let mut root = own.first().map_or(Value::Null, |own| component(own));
    root["type"] = "application".into();
    root["hashes"] = json!([{ "alg": "SHA-256", "content": subject.binary }]);
    let dependencies: Vec<Value> = packages
        .iter()
        .map(|package| {
            let links: Vec<_> = package.dependencies.iter().map(purl).collect();
            json!({ "ref": purl(&package.id), "dependsOn": links })
        })
        .collect();
    json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": serial_number(subject),
        "version": 1,
        "metadata": {
            "timestamp": subject.date,
            "tools": { "components": [
                { "type": "application", "name": "cargo xtask dist" },
                { "type": "application", "name": "rustc", "version": subject.rustc },
            ]},
            "component": root,
            "properties": [
                { "name": "rubelet:commit", "value": subject.commit },
                { "name": "rubelet:target", "value": subject.target },
            ],
        },
        "components": linked.into_iter().map(component).collect::<Vec<_>>(),
        "dependencies": dependencies,
    })
}

fn component(package: &Package) -> Value {
    let (name, version) = &package.id;
    let purl = purl(&package.id);
    let mut component = json!({
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "scope": "required",
        "licenses": [{ "expression": package.licence }],
        "purl": purl,
    });
    if let Some(checksum) = &package.checksum {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    if let Some(url) = &package.repository {
        component["externalReferences"] = json!([{ "type": "vcs", "url": url }]);
    }
    component
}

/// The package URL, which also identifies the component within the bill. `+` in a version is
/// encoded as in the specification of package URLs.
fn purl((name, version): &Id) -> String {
    format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"))
}

/// A UUID of version 8 (RFC 9562) from the commit and the target: identical for the same release.
fn serial_number(subject: &Subject<'_>) -> String {
    let name = format!("rubelet {} {}", subject.commit, subject.target);
    let digest = sha256(name.as_bytes());
    format!(
        "urn:uuid:{}-{}-8{}-8{}-{}",
        &digest[..8],
        &digest[8..12],
        &digest[12..15],
        &digest[15..18],
        &digest[18..30]
    )
}

#[cfg(test)]
mod tests;
