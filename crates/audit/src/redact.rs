//! Text from a client, prepared for the log: bounded, and without possible secrets.

use http::Uri;

/// Suffix of a truncated text, as in the API server.
const CUT: &str = "...TRUNCATED";

/// Longest request URI, in bytes.
const LONGEST_URI: usize = 2048;

/// Query parameters whose values only control display or selection. All others are omitted: clients
/// have sent tokens in queries, and a command may contain a password.
const HARMLESS: &[&str] = &[
    "allowWatchBookmarks",
    "container",
    "dryRun",
    "error",
    "exclude",
    "fieldManager",
    "fieldSelector",
    "follow",
    "force",
    "gracePeriodSeconds",
    "input",
    "labelSelector",
    "limit",
    "limitBytes",
    "output",
    "port",
    "ports",
    "pretty",
    "previous",
    "propagationPolicy",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "sinceSeconds",
    "sinceTime",
    "stderr",
    "stdin",
    "stdout",
    "stream",
    "tailLines",
    "timeoutSeconds",
    "timestamps",
    "tty",
    "verbose",
    "watch",
];

/// The text, truncated to that many bytes.
pub(crate) fn bounded(text: &str, longest: usize) -> String {
    if text.len() <= longest {
        return text.to_owned();
    }
    let end = (0..=longest).rev().find(|at| text.is_char_boundary(*at));
    format!("{}{CUT}", &text[..end.unwrap_or_default()])
}

/// Path and query. An absolute URI could contain a password, so its other parts are omitted.
pub(crate) fn request_uri(uri: &Uri) -> String {
    let mut text = bounded(uri.path(), LONGEST_URI);
    let pairs = uri.query().unwrap_or_default().split('&');
    let pairs = pairs.filter(|pair| !pair.is_empty()).map(|pair| {
        let key = pair.split('=').next().unwrap_or_default();
        match HARMLESS.contains(&key) {
            true => pair,
            false => "REDACTED",
        }
    });
    for (number, pair) in pairs.enumerate() {
        if text.len() > LONGEST_URI {
            break;
        }
        text.push(if number == 0 { '?' } else { '&' });
        text.push_str(pair);
    }
    bounded(&text, LONGEST_URI)
}

/// A line of JSON in which every character beyond ASCII is escaped: text printed on a terminal
/// can't reverse the line or hide a part of it.
pub(crate) fn ascii(json: &str) -> String {
    let mut line = String::with_capacity(json.len() + 1);
    for character in json.chars() {
        if character == '\u{7f}' || !character.is_ascii() {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                line.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            line.push(character);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_keep_what_is_known_to_be_harmless() {
        for (uri, expected) in [
            ("/pods", "/pods"),
            ("/pods?watch=1&limit=5", "/pods?watch=1&limit=5"),
            ("/pods?token=abc&watch=1", "/pods?REDACTED&watch=1"),
            ("/pods?eyJhbGciOi", "/pods?REDACTED"),
            ("/run/a/b/c?cmd=passwd+x", "/run/a/b/c?REDACTED"),
            (
                "/exec/a/b/c?command=x&command=y",
                "/exec/a/b/c?REDACTED&REDACTED",
            ),
            ("/x?Watch=1", "/x?REDACTED"),
            ("http://user:password@host/pods?a=b", "/pods?REDACTED"),
        ] {
            assert_eq!(request_uri(&uri.parse().unwrap()), expected, "{uri}");
        }
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(bounded("abc", 3), "abc");
        assert_eq!(bounded("abcd", 3), "abc...TRUNCATED");
        assert_eq!(bounded("a\u{e9}\u{e9}", 2), "a...TRUNCATED");
        let uri: Uri = format!("/{}?watch=1", "x".repeat(5000)).parse().unwrap();
        let text = request_uri(&uri);
        assert!(text.len() <= LONGEST_URI + 2 * CUT.len() && text.ends_with(CUT));
        let uri: Uri = format!("/?{}", "a&".repeat(5000)).parse().unwrap();
        assert!(request_uri(&uri).len() <= LONGEST_URI + CUT.len());
    }

    #[test]
    fn what_is_not_plain_is_escaped_and_reads_back_the_same() {
        let text = "a\u{7f}\u{202e}\u{e9}\u{1f600}\n\"\u{1b}[31m";
        let line = ascii(&serde_json::to_string(text).unwrap());
        assert!(
            line.bytes().all(|byte| (0x20..0x7f).contains(&byte)),
            "{line}"
        );
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), text);
    }
}
