//! Canonical quantities: the largest suffix that leaves a whole number.

/// Thousandths of a core: `2` or `1900m`.
#[must_use]
pub fn cpu(milli: u64) -> Box<str> {
    match milli % 1000 {
        0 => decimal(milli / 1000),
        _ => format!("{milli}m").into(),
    }
}

/// A count: `110`, and `5k` for five thousand.
#[must_use]
pub fn decimal(count: u64) -> Box<str> {
    suffixed(count, 1000, &["", "k", "M", "G", "T", "P", "E"])
}

/// Bytes: `24105172Ki`, `2Gi`, and plain digits if not a whole number of KiB.
#[must_use]
pub fn bytes(count: u64) -> Box<str> {
    suffixed(count, 1024, &["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"])
}

fn suffixed(mut count: u64, step: u64, suffixes: &[&str]) -> Box<str> {
    let mut place = 0;
    while count != 0 && count.is_multiple_of(step) && place + 1 < suffixes.len() {
        count /= step;
        place += 1;
    }
    format!("{count}{}", suffixes[place]).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_the_form_that_the_api_server_keeps() {
        for (text, expected) in [
            (cpu(0), "0"),
            (cpu(2000), "2"),
            (cpu(1900), "1900m"),
            (cpu(1_000_000), "1k"),
            (decimal(110), "110"),
            (decimal(5000), "5k"),
            (bytes(0), "0"),
            (bytes(24_105_172 << 10), "24105172Ki"),
            (bytes(2 << 30), "2Gi"),
            (bytes(47_093_746_742), "47093746742"),
            (bytes(1 << 60), "1Ei"),
        ] {
            assert_eq!(&*text, expected);
        }
    }
}
