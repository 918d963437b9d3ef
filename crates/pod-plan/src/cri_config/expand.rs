//! `$(VAR)` expansion in values, commands and arguments.
//!
//! Source of the rule: the `env`, `command` and `args` fields of the v1 Container documentation:
//! `$(NAME)` is replaced when NAME is known and left alone otherwise; `$$` is a literal `$`.

/// Expands all references that `lookup` knows.
pub fn expand<'a>(text: &str, lookup: impl Fn(&str) -> Option<&'a str>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        if let Some(tail) = after.strip_prefix('$') {
            out.push('$');
            rest = tail;
        } else if let Some(inner) = after.strip_prefix('(') {
            match inner.find(')') {
                Some(end) => {
                    let name = &inner[..end];
                    match lookup(name) {
                        Some(value) => out.push_str(value),
                        None => out.push_str(&rest[at..at + end + 3]),
                    }
                    rest = &inner[end + 1..];
                }
                None => {
                    out.push_str("$(");
                    rest = inner;
                }
            }
        } else {
            out.push('$');
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::expand;

    #[test]
    fn replaces_known_names_and_leaves_the_rest() {
        let lookup = |name: &str| match name {
            "A" => Some("1"),
            "B" => Some("$(A)"),
            "" => Some("never"),
            _ => None,
        };
        for (text, want) in [
            ("plain", "plain"),
            ("$(A)-$(A)", "1-1"),
            ("$(B)", "$(A)"),
            ("$(MISSING)", "$(MISSING)"),
            ("$$(A)", "$(A)"),
            ("$$$(A)", "$1"),
            ("$A $", "$A $"),
            ("$(A", "$(A"),
            ("é$(A)é", "é1é"),
            ("a$(MISSING)b$(A)", "a$(MISSING)b1"),
        ] {
            assert_eq!(expand(text, lookup), want, "{text}");
        }
    }
}
