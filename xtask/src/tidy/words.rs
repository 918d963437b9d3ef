//! Words that must not be used, and their replacements.

use memchr::memmem;

use super::Finding;
use super::lines::has_word;

/// Words and phrases, in lower case, and their replacements.
const WORDS: [(&str, &str); 32] = [
    ("anew", "say `again`, or `recreate`"),
    ("burial", "say `remove later`, as `LinkReaper` does"),
    ("buries", "say `remove later`"),
    ("bury", "say `remove later`"),
    ("broken_off", "say `interrupted`"),
    ("can't be had", "say what is missing"),
    ("condemn", "say `mark for deletion`"),
    ("condemned", "say `marked for deletion`"),
    ("condemns", "say `marks for deletion`"),
    ("folder", "say `directory`"),
    ("folders", "say `directories`"),
    ("forgave", "say `reset the back-off`"),
    ("forgive", "say `reset the back-off`"),
    ("forgiven", "say `the back-off is reset`"),
    ("forgives", "say `resets the back-off`"),
    ("listen_to", "say `on_readable` or `handle_message`"),
    ("make_ahead", "say `precreate`"),
    ("makeahead", "say `PrecreateContainer`"),
    ("none that can be", "say what is invalid"),
    ("of those that", "name them"),
    ("stumble", "say `panic`"),
    ("stumbled", "say `panicked`"),
    ("stumbles", "say `panics`"),
    ("surroundings", "say `ClusterDeps`, or what they are"),
    ("takes over what", "say `recovers`, `adopts` or `applies`"),
    ("tells that", "say `reports that`"),
    ("to be had", "say where it comes from"),
    ("to_the_end", "say `run_uncancellable`"),
    ("unplumbed", "say `ConnectError`"),
    ("untidy", "say `needs_trim`"),
    ("what became of", "say `the result of`"),
    ("so long", "say for how long"),
];
/// This list, and its tests.
const OURS: &str = "xtask/src/tidy/words.rs";

/// Words to replace in the text of the file at `path`.
pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    // Lock files and inputs for fuzzing contain external words.
    if path == OURS || path.ends_with(".lock") || path.starts_with("fuzz/corpus/") {
        return Vec::new();
    }
    // Most files have none of the words, whatever is between their parts.
    let squeezed = squeeze(text);
    let has = |word: &str| memmem::find(squeezed.as_bytes(), squeeze(word).as_bytes()).is_some();
    let words: Vec<_> = WORDS.into_iter().filter(|(word, _)| has(word)).collect();
    let mut findings = Vec::new();
    if words.is_empty() {
        return findings;
    }
    for (number, line) in (1..).zip(text.lines()) {
        let parts: Vec<String> = identifiers(line).map(parts).collect();
        // A condition is not a duration.
        let line = line.to_lowercase().replace("so long as", "while");
        for (word, remedy) in &words {
            let in_name = parts.iter().any(|parts| contains_word(parts, word));
            if in_name || line.contains(word) && has_word(&line, word) {
                findings.push(Finding {
                    file: path.to_owned(),
                    line: number,
                    rule: format!("`{word}` is not a word of the field"),
                    remedy,
                });
            }
        }
    }
    findings
}

/// The text in lower case, with all words of a line and all parts of a name joined.
fn squeeze(text: &str) -> String {
    let mut text = text.to_lowercase();
    text.retain(|c| c != ' ' && c != '_');
    text
}

/// The names in a line that are made of several words.
fn identifiers(line: &str) -> impl Iterator<Item = &str> {
    let is_inside = |c: char| c.is_ascii_alphanumeric() || c == '_';
    line.split(move |c: char| !is_inside(c)).filter(|name| {
        let rest = name.get(1..).unwrap_or_default();
        name.contains('_') || rest.contains(|c: char| c.is_ascii_uppercase())
    })
}

/// The words of a name, in lower case, each between two underscores: `_to_the_end_`.
fn parts(name: &str) -> String {
    let mut parts = String::from("_");
    let mut after_small = false;
    for c in name.chars() {
        if c.is_ascii_uppercase() && after_small {
            parts.push('_');
        }
        after_small = c.is_ascii_lowercase() || c.is_ascii_digit();
        parts.push(c.to_ascii_lowercase());
    }
    parts.push('_');
    // A condition is not a duration.
    parts.replace("_so_long_as_", "_while_")
}

/// Whether `word`, which may be several, is among the words of a name.
fn contains_word(parts: &str, word: &str) -> bool {
    let is_boundary = |rest: &str, at: usize| rest.as_bytes().get(at) == Some(&b'_');
    let spelled = word.replace(' ', "_");
    parts
        .match_indices(&spelled)
        .any(|(at, _)| is_boundary(parts, at - 1) && is_boundary(parts, at + spelled.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_with_a_better_one_is_found_with_its_line() {
        for (text, lines) in [
            ("fine\nIt starts Anew.\n", &[2][..]),
            ("the Folder of a folder", &[1]),
            ("a scaffolder knows renewal", &[]),
            ("fn to_the_end() {}", &[1]),
            ("So long a pod waits", &[1]),
            ("so long as it runs", &[]),
        ] {
            let found = check("docs/a.md", text);
            let found: Vec<_> = found.iter().map(|finding| finding.line).collect();
            assert_eq!(found, lines, "{text}");
        }
    }

    #[test]
    fn a_word_is_found_inside_a_name() {
        for (text, findings) in [
            ("fn starts_anew() {}", 1),
            ("struct FolderReader;", 1),
            ("struct BrokenOffStart;", 1),
            ("const LINK_BURIAL: u8 = 0;", 1),
            ("fn it_waits_so_long() {}", 1),
            ("fn it_waits_so_long_as_it_runs() {}", 0),
            ("fn a_start_is_broken_off_here() {}", 1),
            ("fn it_runs_anew_in_a_folder() {}", 2),
            ("struct Scaffolders; fn renewal_of() {}", 0),
        ] {
            assert_eq!(check("crates/a/src/a.rs", text).len(), findings, "{text}");
        }
    }

    #[test]
    fn words_in_external_files_are_not_checked() {
        for path in ["Cargo.lock", "fuzz/corpus/manifests/1", OURS] {
            assert!(check(path, "folder").is_empty(), "{path}");
        }
    }
}
