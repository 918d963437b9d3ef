//! The known name that a mistyped one most likely means.

/// The candidate nearest to `name`, or `None` if none is near enough.
///
/// Near means: equal but for case, or one edit away for names of three letters and more, two for names
/// of seven and more, where an edit inserts, removes or replaces a letter or swaps two neighbours. Two candidates at
/// the same distance are ambiguous, and give `None`.
#[must_use]
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = match name.chars().count() {
        0..3 => 0,
        3..7 => 1,
        _ => 2,
    };
    let mut best: Option<(usize, &str)> = None;
    let mut tied = false;
    for candidate in candidates {
        if candidate.eq_ignore_ascii_case(name) {
            return Some(candidate);
        }
        let distance = edits(name, candidate);
        match best {
            Some((least, _)) if distance > least => {}
            Some((least, _)) if distance == least => tied = true,
            _ => {
                best = Some((distance, candidate));
                tied = false;
            }
        }
    }
    best.filter(|&(distance, _)| distance <= limit && !tied)
        .map(|(_, candidate)| candidate)
}

/// Damerau-Levenshtein distance with adjacent swaps.
fn edits(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let width = right.len() + 1;
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..width).collect();
    for (row, &a) in left.iter().enumerate() {
        let mut current = vec![row + 1; width];
        for (column, &b) in right.iter().enumerate() {
            let mut cost = (above[column] + usize::from(a != b))
                .min(above[column + 1] + 1)
                .min(current[column] + 1);
            let swapped = row > 0 && column > 0 && a == right[column - 1] && left[row - 1] == b;
            if swapped {
                cost = cost.min(before[column - 1] + 1);
            }
            current[column + 1] = cost;
        }
        before = above;
        above = current;
    }
    above[width - 1]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_is_recognised_and_a_different_word_is_not() {
        let fields = [
            "image",
            "imagePullPolicy",
            "name",
            "ports",
            "command",
            "args",
            "env",
        ];
        for (typed, meant) in [
            ("imagee", Some("image")),
            ("iamge", Some("image")),
            ("Image", Some("image")),
            ("imagepullpolicy", Some("imagePullPolicy")),
            ("imagPullPolcy", Some("imagePullPolicy")),
            ("comand", Some("command")),
            ("cpu", None),
            ("e", None),
            ("entrypoint", None),
        ] {
            assert_eq!(nearest(typed, fields), meant, "{typed}");
        }
    }

    #[test]
    fn two_equally_near_names_give_no_hint() {
        assert_eq!(nearest("pord", ["port", "pond"]), None);
    }
}
