//! What docs/parity.md calls the same has its words in the code.

use rubelet_base::parity::ParityVerdict;
use rubelet_parity::{
    ANNOTATIONS, CONTAINER_REASONS, NODE_CONDITIONS, POD_CONDITIONS, POD_REASONS,
};
use std::{fs, path::Path};

fn code(directory: &Path, text: &mut String) {
    for entry in fs::read_dir(directory).expect("the directory is there") {
        let path = entry.expect("it can be listed").path();
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.unwrap_or_default();
        let left_out = [
            "tests", "testbed", "sim", "sim-api", "target", "parity", "examples",
        ];
        if path.is_dir() && !left_out.contains(&name) {
            code(&path, text);
        } else if name.ends_with(".rs") && name != "tests.rs" {
            text.push_str(&fs::read_to_string(&path).expect("a source is text"));
        }
    }
}

/// Reasons, types of conditions and names of annotations in the name of a row.
fn words(name: &str) -> impl Iterator<Item = &str> {
    let plain = name.split(" (").next().unwrap_or_default();
    plain
        .split([' ', ','])
        .map(|word| word.trim_end_matches(':'))
        .filter(|word| {
            let capitals = word.chars().filter(|letter| letter.is_uppercase()).count();
            // Reasons of resources are put together.
            !word.starts_with("OutOf") && (capitals > 1 || word.contains(".io/"))
        })
}

#[test]
fn conditions_reasons_and_annotations_that_are_the_same_are_in_the_code() {
    let mut text = String::new();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    code(crates.expect("the directory of crates"), &mut text);
    let tables = [
        ANNOTATIONS,
        CONTAINER_REASONS,
        NODE_CONDITIONS,
        POD_CONDITIONS,
        POD_REASONS,
    ];
    let missing: Vec<&str> = tables
        .into_iter()
        .flatten()
        .filter(|row| row.verdict == ParityVerdict::Same)
        .flat_map(|row| words(row.name))
        .filter(|word| !text.contains(word))
        .collect();
    assert_eq!(missing, [""; 0], "no code has these words");
}
