//! Pressure stall information in the kernel's format.

/// Stall times of one resource.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Pressure {
    /// Some process had to wait.
    pub some: PressureLine,
    /// All processes had to wait at the same time.
    pub full: PressureLine,
}

/// One line of a pressure file.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PressureLine {
    /// Per cent of the last 10 seconds.
    pub avg10: f64,
    /// Per cent of the last 60 seconds.
    pub avg60: f64,
    /// Per cent of the last 300 seconds.
    pub avg300: f64,
    /// Total stall time, in nanoseconds.
    pub total_ns: u64,
}

impl Pressure {
    /// Parses a pressure file; a missing line (`full` of processors before Linux 5.13) is all zero.
    /// `None` if there is no such line at all.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let line = |name: &str| {
            let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
            Some(PressureLine::parse(rest))
        };
        Some(Self {
            some: line("some ")?,
            full: line("full ").unwrap_or_default(),
        })
    }
}

impl PressureLine {
    fn parse(text: &str) -> Self {
        let mut line = Self::default();
        for (name, value) in text
            .split_whitespace()
            .filter_map(|word| word.split_once('='))
        {
            let average = || value.parse().unwrap_or_default();
            match name {
                "avg10" => line.avg10 = average(),
                "avg60" => line.avg60 = average(),
                "avg300" => line.avg300 = average(),
                "total" => {
                    let micros: u64 = value.parse().unwrap_or_default();
                    line.total_ns = micros.saturating_mul(1000);
                }
                _ => {}
            }
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_lines_are_read_and_microseconds_become_nanoseconds() {
        let text = "some avg10=1.50 avg60=0.25 avg300=0.05 total=1234\n\
                    full avg10=0.00 avg60=0.10 avg300=0.00 total=99\n";
        let read = Pressure::parse(text).unwrap();
        assert_eq!(
            (read.some.avg10, read.some.avg60, read.some.avg300),
            (1.5, 0.25, 0.05)
        );
        assert_eq!(
            (read.some.total_ns, read.full.total_ns),
            (1_234_000, 99_000)
        );
        let old = Pressure::parse("some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n").unwrap();
        assert_eq!(old.full, PressureLine::default());
        assert_eq!(Pressure::parse(""), None);
    }
}
