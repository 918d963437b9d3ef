//! The lines of containerd, which differ in their events.

/// A line of containerd, identified by the first numbers of its versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// 1.6: no container events.
    V1_6,
    /// 1.7: each event goes to only one subscriber.
    V1_7,
    /// 2.x: every subscriber gets all events, and one that does not read blocks the others.
    V2,
}

impl Line {
    /// All lines, from old to new.
    pub const ALL: [Self; 3] = [Self::V1_6, Self::V1_7, Self::V2];

    /// Whether it implements `GetContainerEvents`.
    #[must_use]
    pub fn has_events(self) -> bool {
        self != Self::V1_6
    }

    /// The Debian suites that have this line or may have it, the best first.
    pub(super) fn suites(self) -> &'static [&'static str] {
        match self {
            Self::V1_6 => &["bookworm"],
            Self::V1_7 => &["trixie"],
            Self::V2 => &["forky", "sid"],
        }
    }

    /// Whether a version such as `1.7.24` belongs to this line.
    pub(super) fn contains(self, version: &str) -> bool {
        let mut numbers = version.split('.').map(str::parse::<u32>);
        let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else {
            return false;
        };
        match self {
            Self::V1_6 => (major, minor) == (1, 6),
            Self::V1_7 => (major, minor) == (1, 7),
            Self::V2 => major == 2,
        }
    }
}

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::V1_6 => "1.6",
            Self::V1_7 => "1.7",
            Self::V2 => "2.x",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_belongs_to_at_most_one_line() {
        for (version, line) in [
            ("1.6.20", Some(Line::V1_6)),
            ("1.7.24", Some(Line::V1_7)),
            ("2.0.2", Some(Line::V2)),
            ("2.10.0", Some(Line::V2)),
            ("1.70.1", None),
            ("1.5.9", None),
            ("3.0.0", None),
            ("2", None),
            ("", None),
        ] {
            let found: Vec<Line> = Line::ALL
                .into_iter()
                .filter(|line| line.contains(version))
                .collect();
            assert_eq!(found, Vec::from_iter(line), "{version:?}");
        }
    }
}
