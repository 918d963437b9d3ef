//! The stop signal of a container: a name, a number, or the CRI's own enumeration.

use rubelet_cri::v1;

use crate::Refusal;

/// The default: `SIGTERM`.
pub const DEFAULT: i32 = 15;
/// The first and last real-time signal as programs see them; the C library keeps two for itself.
const REAL_TIME: (i32, i32) = (34, 64);

/// Prefix of the names of the CRI's enumeration.
const CRI_PREFIX: &str = "SIGNAL_";

/// Names and numbers on Linux, x86 and ARM.
const SIGNALS: [(&str, i32); 35] = [
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ILL", 4),
    ("TRAP", 5),
    ("ABRT", 6),
    ("IOT", 6),
    ("BUS", 7),
    ("FPE", 8),
    ("KILL", 9),
    ("USR1", 10),
    ("SEGV", 11),
    ("USR2", 12),
    ("PIPE", 13),
    ("ALRM", 14),
    ("TERM", 15),
    ("STKFLT", 16),
    ("CHLD", 17),
    ("CLD", 17),
    ("CONT", 18),
    ("STOP", 19),
    ("TSTP", 20),
    ("TTIN", 21),
    ("TTOU", 22),
    ("URG", 23),
    ("XCPU", 24),
    ("XFSZ", 25),
    ("VTALRM", 26),
    ("PROF", 27),
    ("WINCH", 28),
    ("IO", 29),
    ("POLL", 29),
    ("PWR", 30),
    ("SYS", 31),
    ("UNUSED", 31),
];

/// The signal of a container: the CRI's, else the image's, else [`DEFAULT`].
///
/// # Errors
/// A signal that does not exist.
pub fn resolve(wanted: i32, image: &str) -> Result<i32, Refusal> {
    let refuse = |what: String| Refusal::new("stop_signal", what);
    match v1::Signal::try_from(wanted) {
        Ok(v1::Signal::RuntimeDefault) if image.is_empty() => Ok(DEFAULT),
        Ok(v1::Signal::RuntimeDefault) => parse(image)
            .ok_or_else(|| refuse(format!("the image has the unknown stop signal {image:?}"))),
        Ok(signal) => {
            let name = signal.as_str_name();
            parse(name.strip_prefix(CRI_PREFIX).unwrap_or(name))
                .ok_or_else(|| refuse(format!("unknown signal {name}")))
        }
        Err(_) => Err(refuse(format!("unknown signal {wanted}"))),
    }
}

/// The CRI's form of a signal, for statuses.
#[must_use]
pub(crate) fn to_cri(number: i32) -> v1::Signal {
    let (first, last) = REAL_TIME;
    // The lower half of the real-time signals is counted from the first, the upper from the last.
    let name = match number {
        _ if number == first => "SIGRTMIN".to_owned(),
        _ if number == last => "SIGRTMAX".to_owned(),
        _ if (first..=first + 15).contains(&number) => format!("SIGRTMINPLUS{}", number - first),
        _ if (last - 14..last).contains(&number) => format!("SIGRTMAXMINUS{}", last - number),
        _ => match SIGNALS.iter().find(|(_, one)| *one == number) {
            Some((name, _)) => format!("SIG{name}"),
            None => return v1::Signal::RuntimeDefault,
        },
    };
    v1::Signal::from_str_name(&format!("{CRI_PREFIX}{name}")).unwrap_or(v1::Signal::RuntimeDefault)
}

/// Reads `SIGTERM`, `term`, `15`, `SIGRTMIN+3`, `SIGRTMAX-2` or the CRI's `SIGRTMINPLUS3`.
#[must_use]
pub fn parse(text: &str) -> Option<i32> {
    let (first, last) = REAL_TIME;
    if let Ok(number) = text.parse::<i32>() {
        return (1..=last).contains(&number).then_some(number);
    }
    let upper = text.to_ascii_uppercase();
    let bare = upper.strip_prefix("SIG").unwrap_or(&upper);
    let offset = |rest: &str, sign: char, word: &str| -> Option<i32> {
        if rest.is_empty() {
            return Some(0);
        }
        let digits = rest
            .strip_prefix(sign)
            .or_else(|| rest.strip_prefix(word))?;
        digits
            .parse()
            .ok()
            .filter(|n| (0..=last - first).contains(n))
    };
    if let Some(rest) = bare.strip_prefix("RTMIN") {
        return offset(rest, '+', "PLUS").map(|plus| first + plus);
    }
    if let Some(rest) = bare.strip_prefix("RTMAX") {
        return offset(rest, '-', "MINUS").map(|minus| last - minus);
    }
    SIGNALS
        .iter()
        .find(|(name, _)| *name == bare)
        .map(|(_, number)| *number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_and_kubelets_write_signals_in_many_ways() {
        for (text, number) in [
            ("SIGTERM", 15),
            ("quit", 3),
            ("9", 9),
            ("RTMIN+3", 37),
            ("SIGRTMAX", 64),
            ("sigrtmax-14", 50),
            ("SIGRTMINPLUS15", 49),
        ] {
            assert_eq!(parse(text), Some(number), "{text}");
        }
        for text in ["", "SIG", "0", "65", "-9", "RTMIN+31", "RTMAX+1", "FOO"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_pods_signal_wins_over_the_images() {
        assert_eq!(resolve(0, ""), Ok(15));
        assert_eq!(resolve(0, "SIGQUIT"), Ok(3));
        assert_eq!(resolve(v1::Signal::Sigint.into(), "SIGQUIT"), Ok(2));
        assert!(resolve(0, "NOPE").is_err());
        assert!(resolve(1000, "").is_err());
    }

    #[test]
    fn every_signal_survives_the_way_to_the_cri_and_back() {
        for number in (1..=31).chain(34..=64) {
            let signal = to_cri(number);
            assert_ne!(signal, v1::Signal::RuntimeDefault, "{number}");
            assert_eq!(resolve(signal.into(), ""), Ok(number));
        }
    }
}
