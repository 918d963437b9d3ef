//! The reference pages match the tables.

use rubelet_config::{configuration_markdown, flags_markdown};

fn assert_page(name: &str, made: &str, written: &str) {
    let line = made.lines().zip(written.lines()).position(|(a, b)| a != b);
    assert!(
        made == written,
        "docs/{name}.md is out of date, from line {}; regenerate it with\n\
         cargo run -p rubelet-config --example reference -- {name} > docs/{name}.md",
        line.map_or(made.lines().count().min(written.lines().count()), |line| {
            line
        }) + 1,
    );
}

#[test]
fn the_page_of_flags_is_up_to_date() {
    assert_page(
        "flags",
        &flags_markdown(),
        include_str!("../../../docs/flags.md"),
    );
}

#[test]
fn the_page_of_fields_is_up_to_date() {
    let written = include_str!("../../../docs/configuration.md");
    assert_page("configuration", &configuration_markdown(), written);
}
