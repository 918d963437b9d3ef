//! Challenges of registries: `WWW-Authenticate` of RFC 9110.

/// One way to authenticate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Challenge {
    /// User and password.
    Basic,
    /// A token of a token server.
    Bearer {
        /// Its URL.
        realm: String,
        /// The `service` that the token is for.
        service: Option<String>,
        /// The requested `scope`.
        scope: Option<String>,
    },
}

/// All supported challenges of a header.
pub(super) fn parse(header: &str) -> Vec<Challenge> {
    let mut found = Vec::new();
    let mut rest = header;
    let mut scheme: Option<String> = None;
    let mut parameters: Vec<(String, String)> = Vec::new();
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let (word, after) = token(rest);
        if word.is_empty() {
            break;
        }
        let value_at = after.trim_start_matches([' ', '\t']);
        if let Some(value) = value_at.strip_prefix('=')
            && scheme.is_some()
            && !value.starts_with('=')
        {
            let value = value.trim_start_matches([' ', '\t']);
            let (value, after) = match value.strip_prefix('"') {
                Some(quoted) => unquote(quoted),
                None => {
                    let (value, after) = token(value);
                    (value.to_owned(), after)
                }
            };
            parameters.push((word.to_ascii_lowercase(), value));
            rest = after;
        } else {
            found.extend(
                scheme
                    .take()
                    .and_then(|scheme| challenge(&scheme, &parameters)),
            );
            parameters.clear();
            scheme = Some(word.to_ascii_lowercase());
            rest = after;
        }
    }
    found.extend(scheme.and_then(|scheme| challenge(&scheme, &parameters)));
    found
}

fn challenge(scheme: &str, parameters: &[(String, String)]) -> Option<Challenge> {
    let of = |name: &str| {
        let found = parameters.iter().find(|(key, _)| key == name);
        found
            .map(|(_, value)| value.clone())
            .filter(|value| !value.is_empty())
    };
    match scheme {
        "basic" => Some(Challenge::Basic),
        "bearer" => Some(Challenge::Bearer {
            realm: of("realm")?,
            service: of("service"),
            scope: of("scope"),
        }),
        _ => None,
    }
}

/// A word, and the remaining text.
fn token(text: &str) -> (&str, &str) {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~/:".contains(c);
    let end = text.find(|c| !is_word(c)).unwrap_or(text.len());
    text.split_at(end)
}

/// A quoted text, and the text after its closing quote.
fn unquote(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, &text[at + 1..]),
            '\\' => value.extend(chars.next().map(|(_, c)| c)),
            c => value.push(c),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bearer(realm: &str, service: Option<&str>, scope: Option<&str>) -> Challenge {
        Challenge::Bearer {
            realm: realm.into(),
            service: service.map(Into::into),
            scope: scope.map(Into::into),
        }
    }

    #[test]
    fn challenges_are_read_as_registries_write_them() {
        let token = "https://auth.test/token";
        for (header, challenges) in [
            (
                r#"Bearer realm="https://auth.test/token",service="r.test",scope="repository:a/b:pull,push""#,
                vec![bearer(
                    token,
                    Some("r.test"),
                    Some("repository:a/b:pull,push"),
                )],
            ),
            (r#"Basic realm="Registry Realm""#, vec![Challenge::Basic]),
            (
                r#"Negotiate, bEaReR Realm = "https://auth.test/token" , service=r , Basic realm="x\"y, Bearer realm=z""#,
                vec![bearer(token, Some("r"), None), Challenge::Basic],
            ),
            (
                "Bearer realm=https://auth.test/token",
                vec![bearer(token, None, None)],
            ),
            ("Bearer", vec![]),
            ("Digest qop=\"auth\"", vec![]),
            ("", vec![]),
            (
                "Bearer realm=\"unended",
                vec![bearer("unended", None, None)],
            ),
        ] {
            assert_eq!(parse(header), challenges, "{header}");
        }
    }

    proptest! {
        #[test]
        fn no_header_makes_the_parser_panic_or_hang(header in ".{0,60}", other in "[Bearlm=\", \\\\]{0,60}") {
            let _ = (parse(&header), parse(&other));
        }
    }
}
