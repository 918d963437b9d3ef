//! How a feature of the kubelet compares here, as tables for users say it.

/// How a feature of the kubelet compares here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParityVerdict {
    /// It works as in the kubelet, which may do nothing either.
    Same,
    /// It does the same, and more or more safely; the reason is given.
    Better,
    /// It deliberately differs; the reason is given.
    Differs,
    /// It is missing, completely or in part, and Rubelet reports that at the start, or where it is
    /// used.
    NotYet,
}

impl ParityVerdict {
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

/// The count of each verdict in a table: `same 3, better 1, differs 0, not yet 2`.
#[must_use]
pub fn count_verdicts(verdicts: impl IntoIterator<Item = ParityVerdict>) -> String {
    let mut counts = ParityVerdict::ALL.map(|verdict| (verdict, 0));
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
        let found = [
            ParityVerdict::NotYet,
            ParityVerdict::Same,
            ParityVerdict::NotYet,
        ];
        assert_eq!(
            count_verdicts(found),
            "same 1, better 0, differs 0, not yet 2"
        );
    }
}
