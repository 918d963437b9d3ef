//! Compares the timeline of a story with its golden file.

/// Lines that are only in the file begin with `-`, lines that are only in the result with `+`;
/// equal lines around them are context.
pub(super) fn diff(written: &str, actual: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (written.lines().collect(), actual.lines().collect());
    let mut common = vec![vec![0_usize; new.len() + 1]; old.len() + 1];
    for (i, left) in old.iter().enumerate().rev() {
        for (j, right) in new.iter().enumerate().rev() {
            common[i][j] = if left == right {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut text = String::new();
    let mut put = |mark: char, line: &str| text.push_str(&format!("{mark} {line}\n"));
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            put(' ', old[i]);
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || i < old.len() && common[i + 1][j] >= common[i][j + 1] {
            put('-', old[i]);
            i += 1;
        } else {
            put('+', new[j]);
            j += 1;
        }
    }
    text
}

#[test]
fn a_diff_shows_removed_and_added_lines() {
    let shown = diff("a\nb\nc\n", "a\nx\nc\nd\n");
    assert_eq!(shown, "  a\n- b\n+ x\n  c\n+ d\n");
}
