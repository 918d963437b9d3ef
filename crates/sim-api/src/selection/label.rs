//! Label selectors: requirements on labels that must all be met.
//!
//! Source of the grammar and the texts: apimachinery's `labels.Parse`. A text is first split into words and
//! symbols; `in` and `notin` are operators only where an operator is allowed.

use serde_json::Value;

/// Requirements that must all be met.
#[derive(Debug, Clone)]
pub(super) struct LabelSelector(Vec<Requirement>);

#[derive(Debug, Clone)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Debug, Clone)]
enum Test {
    Present(bool),
    /// One of these, or none of these.
    OneOf(bool, Vec<String>),
    Above(i64),
    Below(i64),
}

impl LabelSelector {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let tokens = tokens(text);
        let mut tokens = Tokens(&tokens);
        let mut requirements = Vec::new();
        while !tokens.0.is_empty() {
            if !tokens.is_word() && tokens.peek() != "!" {
                let found = tokens.peek();
                return Err(match requirements.is_empty() {
                    true => {
                        format!("found '{found}', expected: !, identifier, or 'end of string'")
                    }
                    false => format!("found '{found}', expected: identifier after ','"),
                });
            }
            let requirement = requirement(&mut tokens);
            requirements
                .push(requirement.map_err(|why| format!("unable to parse requirement: {why}"))?);
            match tokens.next() {
                "" => break,
                "," if tokens.0.is_empty() => {
                    return Err("found '', expected: identifier after ','".to_owned());
                }
                "," => {}
                found => return Err(format!("found '{found}', expected: ',' or 'end of string'")),
            }
        }
        Ok(Self(requirements))
    }

    pub(super) fn matches(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        self.0.iter().all(|requirement| {
            let value = labels.get(&requirement.key).and_then(Value::as_str);
            let number = value.and_then(|value| value.parse::<i64>().ok());
            match &requirement.test {
                Test::Present(wanted) => value.is_some() == *wanted,
                Test::OneOf(wanted, values) => {
                    value.is_some_and(|value| values.iter().any(|one| one == value)) == *wanted
                }
                Test::Above(bound) => number.is_some_and(|number| number > *bound),
                Test::Below(bound) => number.is_some_and(|number| number < *bound),
            }
        })
    }
}

const SIGNS: [char; 7] = ['=', '!', '(', ')', ',', '>', '<'];

/// Words and symbols; two symbols that belong together are one token.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_double = ["==", "!="].iter().any(|double| rest.starts_with(double));
        let length = match first {
            _ if is_double => 2,
            first if SIGNS.contains(&first) => 1,
            _ => rest
                .find(|letter: char| SIGNS.contains(&letter) || letter.is_ascii_whitespace())
                .unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at(length);
        tokens.push(token);
        rest = after.trim_start();
    }
    tokens
}

struct Tokens<'t, 's>(&'t [&'s str]);

impl<'s> Tokens<'_, 's> {
    /// The next token; empty at the end.
    fn peek(&self) -> &'s str {
        self.0.first().copied().unwrap_or_default()
    }

    fn next(&mut self) -> &'s str {
        let token = self.peek();
        self.0 = self.0.get(1..).unwrap_or_default();
        token
    }

    fn is_word(&self) -> bool {
        !self.peek().is_empty() && !self.peek().starts_with(SIGNS)
    }
}

fn requirement(tokens: &mut Tokens<'_, '_>) -> Result<Requirement, String> {
    let negated = tokens.peek() == "!";
    if negated {
        tokens.next();
    }
    if !tokens.is_word() {
        return Err(format!("found '{}', expected: identifier", tokens.peek()));
    }
    let key = tokens.next();
    check_key(key)?;
    let test = match tokens.peek() {
        _ if negated => Test::Present(false),
        "" | "," => Test::Present(true),
        _ => test(tokens)?,
    };
    Ok(Requirement {
        key: key.to_owned(),
        test,
    })
}

fn test(tokens: &mut Tokens<'_, '_>) -> Result<Test, String> {
    Ok(match tokens.next() {
        "=" | "==" => Test::OneOf(true, vec![value(tokens)?]),
        "!=" => Test::OneOf(false, vec![value(tokens)?]),
        "in" => Test::OneOf(true, values(tokens)?),
        "notin" => Test::OneOf(false, values(tokens)?),
        ">" => Test::Above(number(tokens)?),
        "<" => Test::Below(number(tokens)?),
        found => {
            return Err(format!(
                "found '{found}', expected: in, notin, =, ==, !=, gt, lt"
            ));
        }
    })
}

fn value(tokens: &mut Tokens<'_, '_>) -> Result<String, String> {
    match tokens.peek() {
        "" | "," => Ok(String::new()),
        _ if tokens.is_word() => checked_value(tokens.next()),
        found => Err(format!("found '{found}', expected: identifier")),
    }
}

fn number(tokens: &mut Tokens<'_, '_>) -> Result<i64, String> {
    let text = value(tokens)?;
    text.parse().map_err(|_| {
        format!(
            "values[0]: Invalid value: {text:?}: for 'Gt', 'Lt' operators, the value must be an \
             integer"
        )
    })
}

/// The values in parentheses; an empty text between commas is an empty value.
fn values(tokens: &mut Tokens<'_, '_>) -> Result<Vec<String>, String> {
    match tokens.next() {
        "(" => {}
        found => return Err(format!("found '{found}' expected: '('")),
    }
    let mut values = vec![String::new()];
    let mut is_open = true;
    loop {
        match tokens.peek() {
            ")" => {
                tokens.next();
                return Ok(values);
            }
            "," => {
                tokens.next();
                values.push(String::new());
                is_open = true;
            }
            _ if is_open && tokens.is_word() => {
                let last = values.last_mut().expect("it begins with one");
                *last = checked_value(tokens.next())?;
                is_open = false;
            }
            found if is_open => {
                return Err(format!("found '{found}', expected: ',', ')' or identifier"));
            }
            found => return Err(format!("found '{found}', expected: ',' or ')'")),
        }
    }
}

/// Letters or digits at both ends, and in between also `-`, `_` and `.`.
fn is_name(text: &str, longest: usize) -> bool {
    let is_inner = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let is_end = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric());
    text.len() <= longest
        && text.chars().all(is_inner)
        && is_end(text.chars().next())
        && is_end(text.chars().next_back())
}

fn check_key(key: &str) -> Result<(), String> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let is_domain = |prefix: &str| {
        is_name(prefix, 253) && !prefix.contains(|c: char| c.is_ascii_uppercase() || c == '_')
    };
    if is_name(name, 63) && prefix.is_none_or(is_domain) {
        return Ok(());
    }
    Err(format!(
        "key: Invalid value: {key:?}: it is not a label name"
    ))
}

fn checked_value(value: &str) -> Result<String, String> {
    if is_name(value, 63) {
        return Ok(value.to_owned());
    }
    Err(format!(
        "values[0]: Invalid value: {value:?}: it is not a label value"
    ))
}

#[cfg(test)]
mod tests;
