//! Amounts of bytes, as people read them.

/// Decimal units with three digits, as other tools show images.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return format!("{bytes}B");
    }
    let mut amount = bytes as f64 / 1000.0;
    let mut unit = 0;
    while amount >= 999.5 && unit + 1 < UNITS.len() {
        amount /= 1000.0;
        unit += 1;
    }
    let digits = match amount {
        amount if amount < 9.995 => 2,
        amount if amount < 99.95 => 1,
        _ => 0,
    };
    format!("{amount:.digits$}{}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_digits() {
        for (bytes, shown) in [
            (0, "0B"),
            (999, "999B"),
            (1000, "1.00kB"),
            (12_345, "12.3kB"),
            (999_499, "999kB"),
            (999_500, "1.00MB"),
            (4_275_000_000, "4.28GB"),
        ] {
            assert_eq!(size(bytes), shown);
        }
    }
}
