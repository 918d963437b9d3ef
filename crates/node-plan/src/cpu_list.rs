//! Lists of CPUs in the kernel's notation, such as `0-3,6`.

use std::fmt;

/// A set of CPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuList {
    /// First and last of each range: sorted, neither adjacent nor overlapping.
    ranges: Vec<(u32, u32)>,
}

/// A text that is not a list of CPUs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a list of CPUs such as 0-3,6")]
pub struct CpuListError(pub String);

impl CpuList {
    /// Parses a list; an empty text is the empty set. CPUs may be named more than once.
    ///
    /// # Errors
    /// A part is neither a number nor a range from a lower to a higher one.
    pub fn parse(text: &str) -> Result<Self, CpuListError> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Self::default());
        }
        let parts: Option<Vec<(u32, u32)>> = text.split(',').map(range).collect();
        let mut parts = parts.ok_or_else(|| CpuListError(text.to_owned()))?;
        parts.sort_unstable();
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for (first, last) in parts {
            match ranges.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
                _ => ranges.push((first, last)),
            }
        }
        Ok(Self { ranges })
    }

    /// How many CPUs it has.
    #[must_use]
    pub fn count(&self) -> u64 {
        let sizes = self
            .ranges
            .iter()
            .map(|(first, last)| u64::from(last - first) + 1);
        sizes.sum()
    }

    /// Whether all of its CPUs are in `other`.
    #[must_use]
    pub fn is_subset_of(&self, other: &Self) -> bool {
        self.ranges.iter().all(|(first, last)| {
            let mut others = other.ranges.iter();
            others.any(|(start, end)| start <= first && last <= end)
        })
    }
}

fn range(part: &str) -> Option<(u32, u32)> {
    let (first, last) = part.split_once('-').unwrap_or((part, part));
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (first <= last).then_some((first, last))
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (first, last)) in self.ranges.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            if first == last {
                write!(f, "{comma}{first}")?;
            } else {
                write!(f, "{comma}{first}-{last}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_counted_and_shown_without_repetitions() {
        for (text, count, shown) in [
            ("", 0, ""),
            ("0", 1, "0"),
            ("0-3,6\n", 5, "0-3,6"),
            ("6,0-1,1-3", 5, "0-3,6"),
            ("2,1,0", 3, "0-2"),
            ("0-4294967295", 4_294_967_296, "0-4294967295"),
        ] {
            let list = CpuList::parse(text).unwrap();
            assert_eq!(
                (list.count(), list.to_string().as_str()),
                (count, shown),
                "{text:?}"
            );
        }
        for text in ["a", "1-", "-1", "3-1", "1,,2", "0-1-2"] {
            assert_eq!(CpuList::parse(text), Err(CpuListError(text.to_owned())));
        }
    }

    #[test]
    fn a_subset_has_no_cpu_of_its_own() {
        let all = CpuList::parse("0-3,6").unwrap();
        for (text, is_subset) in [
            ("", true),
            ("1-2,6", true),
            ("3,6", true),
            ("3-4", false),
            ("7", false),
        ] {
            assert_eq!(
                CpuList::parse(text).unwrap().is_subset_of(&all),
                is_subset,
                "{text:?}"
            );
        }
    }
}
