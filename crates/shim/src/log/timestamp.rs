//! Time stamps of entries: RFC 3339 with nanoseconds and the local offset, `Z` if that is zero. The
//! time zone is that of `TZ` or `/etc/localtime` at the start of the shim.

use std::io::Write as _;

/// Formats times; caches the local offset for each quarter of an hour, since no zone changes its
/// offset within one.
#[derive(Debug, Default)]
pub(crate) struct TimestampFormatter {
    quarter: Option<u64>,
    offset_seconds: i64,
    text: Vec<u8>,
}

impl TimestampFormatter {
    /// The text of a time in nanoseconds since 1970.
    pub(crate) fn of(&mut self, at_ns: u64) -> &str {
        let seconds = at_ns / 1_000_000_000;
        let quarter = seconds / 900;
        if self.quarter != Some(quarter) {
            self.quarter = Some(quarter);
            self.offset_seconds = local_offset(seconds);
        }
        self.text.clear();
        let nanoseconds = at_ns % 1_000_000_000;
        write(&mut self.text, seconds, nanoseconds, self.offset_seconds);
        str::from_utf8(&self.text).expect("digits and signs are ASCII")
    }
}

fn write(text: &mut Vec<u8>, seconds: u64, nanoseconds: u64, offset: i64) {
    let local = seconds.saturating_add_signed(offset);
    let (year, month, day) = date_of(local / 86_400);
    let (hour, minute, second) = (local / 3600 % 24, local / 60 % 60, local % 60);
    let written = write!(
        text,
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanoseconds:09}"
    );
    let zone = match offset / 60 {
        0 => write!(text, "Z"),
        minutes => {
            let sign = if minutes < 0 { '-' } else { '+' };
            let minutes = minutes.unsigned_abs();
            write!(text, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
        }
    };
    written.and(zone).expect("a vector takes all bytes");
}

/// Year, month and day of a number of days since 1970, in the Gregorian calendar. Years are counted
/// from March, so that the leap day is the last one of a year.
fn date_of(days: u64) -> (u64, u64, u64) {
    const PER_ERA: u64 = 146_097;
    // Days from the 1st of March 0000 to the 1st of January 1970.
    let days = days + 719_468;
    let (era, day) = (days / PER_ERA, days % PER_ERA);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

/// The offset of local time to UTC in seconds.
fn local_offset(seconds: u64) -> i64 {
    let Ok(time) = libc::time_t::try_from(seconds) else {
        return 0;
    };
    let mut local = std::mem::MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: both pointers are valid for the call, which fills the second one's target. It reads
    // the environment, which nothing in this single-threaded process changes.
    #[allow(unsafe_code)]
    let done = unsafe { libc::localtime_r(&raw const time, local.as_mut_ptr()) };
    if done.is_null() {
        return 0;
    }
    // SAFETY: every bit pattern of the plain struct is valid, and the call has filled it.
    #[allow(unsafe_code)]
    let local = unsafe { local.assume_init() };
    local.tm_gmtoff
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(seconds: u64, nanoseconds: u64, offset: i64) -> String {
        let mut text = Vec::new();
        write(&mut text, seconds, nanoseconds, offset);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn times_are_those_that_jiff_writes() {
        for seconds in (0..4_200_000_000).step_by(1_234_567) {
            let expected = jiff::Timestamp::new(seconds as i64, 0).unwrap().to_string();
            let expected = expected.replace('Z', ".000000000Z");
            assert_eq!(text(seconds, 0, 0), expected);
        }
    }

    #[test]
    fn offsets_and_fractions_are_written() {
        assert_eq!(text(0, 7, 0), "1970-01-01T00:00:00.000000007Z");
        assert_eq!(
            text(951_782_400, 0, 3600),
            "2000-02-29T01:00:00.000000000+01:00"
        );
        assert_eq!(
            text(86_400, 0, -12_600),
            "1970-01-01T20:30:00.000000000-03:30"
        );
    }
}
