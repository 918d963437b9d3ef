//! Words that must not be used, and their replacements.

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
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        // A condition is not a duration.
        let line = line.to_lowercase().replace("so long as", "while");
        for (word, remedy) in WORDS {
            if line.contains(word) && has_word(&line, word) {
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
    fn words_in_external_files_are_not_checked() {
        for path in ["Cargo.lock", "fuzz/corpus/manifests/1", OURS] {
            assert!(check(path, "folder").is_empty(), "{path}");
        }
    }
}
