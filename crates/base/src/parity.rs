//! The words of the pages that compare Rubelet with the kubelet of Kubernetes 1.36, row by row.

/// What becomes here of something that the kubelet has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does what it does in the kubelet, which may be nothing.
    Same,
    /// It does that, and more or more safely; a reason stands beside it.
    Better,
    /// It does something else on purpose; a reason stands beside it.
    Differs,
    /// It is missing, as a whole or in part, and Rubelet says so: at the start, or where it is used.
    NotYet,
}

impl Verdict {
    /// Every verdict, in the order of tables.
    pub const ALL: [Self; 4] = [Self::Same, Self::Better, Self::Differs, Self::NotYet];

    /// The word for tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Better => "better",
            Self::Differs => "differs",
            Self::NotYet => "not yet",
        }
    }
}

/// How often each verdict stands in a table: `same 3, better 1, differs 0, not yet 2`.
#[must_use]
pub fn count_verdicts(verdicts: impl IntoIterator<Item = Verdict>) -> String {
    let mut counts = Verdict::ALL.map(|verdict| (verdict, 0));
    for found in verdicts {
        for (verdict, count) in &mut counts {
            *count += u32::from(*verdict == found);
        }
    }
    let words = counts.map(|(verdict, count)| format!("{} {count}", verdict.name()));
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_counted_in_the_order_of_tables() {
        let found = [Verdict::NotYet, Verdict::Same, Verdict::NotYet];
        assert_eq!(
            count_verdicts(found),
            "same 1, better 0, differs 0, not yet 2"
        );
    }
}
