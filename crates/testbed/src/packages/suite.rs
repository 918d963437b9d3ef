//! Replaces the Debian suite in the machine's own package sources: text in, text out.

/// The codename in the text of an os-release file.
pub(super) fn codename(os_release: &str) -> Option<String> {
    let value = os_release
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="))?;
    let value = value.trim().trim_matches('"');
    (!value.is_empty()).then(|| value.to_owned())
}

/// The entries of a one-line sources file (`*.list`) that are Debian's own archive for suite
/// `from`, with suite `to` instead. Empty when there are none.
pub(super) fn derive_list(text: &str, from: &str, to: &str) -> String {
    text.lines()
        .filter_map(|line| derive_line(line, from, to))
        .collect()
}

fn derive_line(line: &str, from: &str, to: &str) -> Option<String> {
    let rest = line.trim().strip_prefix("deb ")?.trim_start();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(rest) => {
            let (options, rest) = rest.split_once(']')?;
            (format!("[{options}] "), rest)
        }
        None => (String::new(), rest),
    };
    let words: Vec<&str> = rest.split_whitespace().collect();
    let (uri, suite, components) = (words.first()?, words.get(1)?, words.get(2..)?);
    let key = options
        .split(['[', ']', ' '])
        .find_map(|option| option.strip_prefix("signed-by="));
    let own = *suite == from && components.contains(&"main") && is_debian_key(key);
    own.then(|| format!("deb {options}{uri} {to} main\n"))
}

/// The same as [`derive_list`] for a deb822 sources file (`*.sources`).
pub(super) fn derive_deb822(text: &str, from: &str, to: &str) -> String {
    // A comment may be inside a stanza; only an empty line ends one.
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    lines
        .split(|line| line.trim().is_empty())
        .filter_map(|stanza| derive_stanza(stanza, from, to))
        .collect()
}

fn derive_stanza(stanza: &[&str], from: &str, to: &str) -> Option<String> {
    let fields = fields_of(stanza);
    let value = |name: &str| {
        fields
            .iter()
            .find(|field| field.name.eq_ignore_ascii_case(name))
            .map(|f| f.text.as_str())
    };
    let has = |name: &str, word: &str| {
        value(name).is_some_and(|text| text.split_whitespace().any(|found| found == word))
    };
    let own = has("Types", "deb")
        && has("Suites", from)
        && has("Components", "main")
        && !has("Enabled", "no")
        && is_debian_key(value("Signed-By"));
    own.then(|| {
        let kept = fields
            .iter()
            .filter(|field| {
                !REPLACED
                    .iter()
                    .any(|name| field.name.eq_ignore_ascii_case(name))
            })
            .map(|field| format!("{}:{}\n", field.name, field.text));
        format!(
            "Types: deb\nSuites: {to}\nComponents: main\n{}\n",
            kept.collect::<Vec<_>>().concat()
        )
    })
}

/// The fields that [`derive_stanza`] writes itself.
const REPLACED: [&str; 3] = ["Types", "Suites", "Components"];

struct Field {
    name: String,
    /// All after the colon, with the line breaks and indents of continuation lines.
    text: String,
}

fn fields_of(stanza: &[&str]) -> Vec<Field> {
    let mut fields: Vec<Field> = Vec::new();
    for line in stanza {
        if line.starts_with([' ', '\t']) {
            if let Some(last) = fields.last_mut() {
                last.text.push('\n');
                last.text.push_str(line);
            }
        } else if let Some((name, text)) = line.split_once(':') {
            fields.push(Field {
                name: name.to_owned(),
                text: text.to_owned(),
            });
        }
    }
    fields
}

/// Whether an entry signed by this key may be Debian's own; other archives that use Debian's
/// codenames have their own key file.
fn is_debian_key(signed_by: Option<&str>) -> bool {
    signed_by.is_none_or(|key| {
        key.contains("debian-archive-keyring") || key.contains("BEGIN PGP PUBLIC KEY BLOCK")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

    #[test]
    fn the_codename_comes_from_os_release() {
        let text = "NAME=\"Debian GNU/Linux\"\nVERSION_CODENAME=bookworm\nID=debian\n";
        assert_eq!(codename(text).as_deref(), Some("bookworm"));
        assert_eq!(codename("NAME=x\n"), None);
    }

    #[test]
    fn a_one_line_entry_changes_only_its_suite() {
        for (line, derived) in [
            (
                "deb http://a/debian bookworm main contrib",
                "deb http://a/debian forky main\n",
            ),
            (
                "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://a/debian bookworm main",
                "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://a/debian forky main\n",
            ),
            (
                "deb [arch=amd64] http://a/debian bookworm main",
                "deb [arch=amd64] http://a/debian forky main\n",
            ),
            ("deb-src http://a/debian bookworm main", ""),
            ("deb http://a/debian bookworm-updates main", ""),
            ("deb http://a/debian-security bookworm-security main", ""),
            (
                "deb [signed-by=/usr/share/keyrings/other.gpg] http://b bookworm stable",
                "",
            ),
            (
                "deb [signed-by=/usr/share/keyrings/other.gpg] http://b bookworm main",
                "",
            ),
            ("deb http://c/apt tools-bookworm main", ""),
            ("# deb http://a/debian bookworm main", ""),
        ] {
            assert_eq!(derive_list(line, "bookworm", "forky"), derived, "{line}");
        }
    }

    #[test]
    fn only_stanzas_of_debians_archive_are_kept() {
        let text = format!(
            "Types: deb deb-src\n# an archive\nURIs: http://a/debian\nSuites: bookworm \
             bookworm-updates\nComponents: main contrib\nSigned-By: {KEY}\n\nTypes: deb\nURIs: \
             http://a/debian-security\nSuites: bookworm-security\nComponents: main\nSigned-By: \
             {KEY}\n\nTypes: deb\nURIs: http://b\nSuites: bookworm\nComponents: \
             main\nSigned-By: /usr/share/keyrings/other.gpg\n"
        );
        assert_eq!(
            derive_deb822(&text, "bookworm", "forky"),
            format!(
                "Types: deb\nSuites: forky\nComponents: main\nURIs: http://a/debian\nSigned-By: \
                 {KEY}\n\n"
            )
        );
    }

    #[test]
    fn a_key_inside_a_stanza_is_kept() {
        let key = "Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc\n";
        let text = format!("types: deb\nuris: http://a\nsuites: trixie\ncomponents: main\n{key}");
        let derived = derive_deb822(&text, "trixie", "forky");
        assert!(
            derived.ends_with(&format!("uris: http://a\n{key}\n")),
            "{derived}"
        );
    }

    #[test]
    fn a_disabled_stanza_is_omitted() {
        let text = "Enabled: no\nTypes: deb\nURIs: http://a\nSuites: trixie\nComponents: main\n";
        assert_eq!(derive_deb822(text, "trixie", "forky"), "");
    }
}
