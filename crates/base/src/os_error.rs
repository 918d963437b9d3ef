//! The texts of system errors.

use std::io;

/// The text of an error without the number that Rust adds: ` (os error 2)`.
#[must_use]
pub fn error_text(error: &io::Error) -> String {
    let mut text = error.to_string();
    if let Some(end) = text.find(" (os error") {
        text.truncate(end);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_goes_and_the_rest_stays() {
        let error = io::Error::from_raw_os_error(2);
        assert_eq!(error_text(&error), "No such file or directory");
        assert_eq!(error_text(&io::Error::other("no number")), "no number");
    }
}
