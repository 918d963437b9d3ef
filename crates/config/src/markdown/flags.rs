//! `docs/flags.md` and the text of `--help`.

use super::{cell, field_at, meaning, shown};
use crate::field::Effect;
use crate::fields::KubeletConfiguration;
use crate::flags::{Flag, Role, all_flags};
use crate::rubelet_options::RubeletOptions;
use rubelet_base::parity::ParityVerdict;
use serde_json::Value;
use std::fmt::Write as _;

/// The text of `docs/flags.md`.
#[must_use]
pub fn flags_markdown() -> String {
    let mut page = "# Flags\n\
         \n\
         <!-- Generated from the tables in crates/config. Change those, and run its tests. -->\n\
         \n\
         The flags of `rubelet run`, and of `rubelet` when it is called as `kubelet`. They are parsed as \
         the kubelet parses them: `--name value` or `--name=value`, `_` instead of `-`, a boolean needs no \
         value, lists and mappings may be given more than once, and otherwise the last value wins. \
         An unknown flag is an error. The verdicts are those of [the fields](configuration.md).\n\
         \n\
         ## Flags without a field\n\
         \n\
         | Flag | Value | Default | Verdict | Meaning |\n|---|---|---|---|---|\n"
        .to_owned();
    for flag in all_flags() {
        if let Role::Own(effect) = flag.role {
            row(&mut page, flag, effect.name(), &sentence(flag.help, ""));
        }
    }
    page.push_str(
        "\n## Flags that set a field\n\
         \n\
         Each overrides the [field](configuration.md) named beside it. Prefer a file, because it can be \
         checked with `rubelet config validate`.\n\
         \n\
         | Flag | Value | Field | Default | Verdict | Meaning |\n|---|---|---|---|---|---|\n",
    );
    for flag in all_flags() {
        if let Role::Field(path) = flag.role {
            let field = field_at(path).expect("the test of the table finds each field");
            writeln!(
                page,
                "| `--{}` | {} | `{path}` | {} | {} | {} |",
                flag.name,
                cell(flag.kind.example()),
                shown(&default_of(path)),
                field.effect.name(),
                cell(&meaning(field)),
            )
            .expect("a String takes any text");
        }
    }
    page.push_str(
        "\n## Flags that are accepted and have no effect\n\
         \n\
         Each causes a warning at the start.\n\
         \n\
         | Flag | Value | Default | Verdict | Meaning in the kubelet, and why it has no effect |\n\
         |---|---|---|---|---|\n",
    );
    for flag in all_flags() {
        if let Role::Ignored(reason) = flag.role {
            row(
                &mut page,
                flag,
                ParityVerdict::Differs.name(),
                &sentence(flag.help, reason),
            );
        }
    }
    page
}

fn row(page: &mut String, flag: &Flag, effect: &str, meaning: &str) {
    let default = shown(&Value::from(flag.default));
    writeln!(
        page,
        "| `--{}` | {} | {default} | {effect} | {} |",
        flag.name,
        cell(flag.kind.example()),
        cell(meaning),
    )
    .expect("a String takes any text");
}

/// The help, followed by the reason as a sentence.
fn sentence(help: &str, reason: &str) -> String {
    let mut letters = reason.chars();
    match letters.next() {
        Some(first) => format!("{help} {}{}.", first.to_uppercase(), letters.as_str()),
        None => help.to_owned(),
    }
}

fn default_of(path: &str) -> Value {
    let (defaults, path) = match path.strip_prefix("rubelet.") {
        Some(path) => (serde_json::to_value(RubeletOptions::default()), path),
        None => (serde_json::to_value(KubeletConfiguration::default()), path),
    };
    let pointer = format!("/{}", path.replace('.', "/"));
    let defaults = defaults.unwrap_or_default();
    defaults.pointer(&pointer).cloned().unwrap_or_default()
}

/// The flags as `--help` lists them: those that have an effect, one per line, with their meaning
/// below.
#[must_use]
pub fn flags_help() -> String {
    let mut text = String::new();
    let mut names: Vec<(&str, String, &str)> = all_flags()
        .filter_map(|flag| {
            let value = flag.kind.example().to_owned();
            match flag.role {
                Role::Own(effect) if effect != Effect::NotYet => {
                    Some((flag.name, value, flag.help))
                }
                Role::Field(path) => field_at(path)
                    .filter(|field| field.effect != Effect::NotYet)
                    .map(|field| (flag.name, value, field.help.trim())),
                Role::Own(_) | Role::Ignored(_) => None,
            }
        })
        .collect();
    names.sort_unstable();
    for (name, value, help) in names {
        let dashes = if name.len() == 1 { "-" } else { "--" };
        writeln!(text, "  {dashes}{name} {value}\n        {help}")
            .expect("a String takes any text");
    }
    text.push_str("\nMore flags of the kubelet are accepted; docs/flags.md lists them all.\n");
    text
}
