//! The texts of system errors.

/// The text of an `io::Error` without the number that Rust adds: ` (os error 2)`.
#[must_use]
pub fn without_number(text: &str) -> &str {
    text.split_once(" (os error").map_or(text, |(text, _)| text)
}

#[cfg(test)]
mod tests {
    use super::without_number;

    #[test]
    fn the_number_goes_and_the_rest_stays() {
        let error = std::io::Error::from_raw_os_error(2).to_string();
        assert_eq!(without_number(&error), "No such file or directory");
        assert_eq!(without_number("no number"), "no number");
    }
}
