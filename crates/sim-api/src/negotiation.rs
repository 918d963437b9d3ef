//! Negotiation of the response's format. Source of the rules: upstream's `handlers/negotiation`.

use crate::{StatusError, query::Query};

/// Format of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseFormat {
    /// Objects.
    Object,
    /// Objects as protobuf.
    Protobuf,
    /// A meta.k8s.io/v1 Table.
    Table(Include),
}

/// What a row of a table contains besides its cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Include {
    Nothing,
    Metadata,
    Object,
}

impl ResponseFormat {
    /// The first format of an `Accept` header that is supported.
    pub(crate) fn of(accept: &str, query: &Query) -> Result<Self, StatusError> {
        if accept.trim().is_empty() {
            return Ok(Self::Object);
        }
        let mut clauses: Vec<Vec<&str>> = accept
            .split(',')
            .map(|clause| clause.split(';').map(str::trim).collect())
            .collect();
        // Types of the same weight keep their order.
        clauses.sort_by_key(|clause| std::cmp::Reverse(weight(clause)));
        let found = clauses.iter().find_map(|clause| {
            let has = |wanted: &str| clause[1..].contains(&wanted);
            let is_plain = !clause[1..].iter().any(|part| part.starts_with("as="));
            match clause[0] {
                "application/json" | "application/*" | "*/*" if is_plain => Some(Self::Object),
                "application/vnd.kubernetes.protobuf" if is_plain => Some(Self::Protobuf),
                "application/json" if has("as=Table") && has("v=v1") && has("g=meta.k8s.io") => {
                    Some(Self::Table(match query.text("includeObject") {
                        "None" => Include::Nothing,
                        "Object" => Include::Object,
                        _ => Include::Metadata,
                    }))
                }
                _ => None,
            }
        });
        found.ok_or_else(StatusError::not_acceptable)
    }

    /// Format of an error.
    pub(crate) fn of_error(accept: &str) -> Self {
        match Self::of(accept, &Query::default()) {
            Ok(Self::Protobuf) => Self::Protobuf,
            _ => Self::Object,
        }
    }
}

/// The weight of a media type in thousandths; by default the weight is 1.
fn weight(clause: &[&str]) -> u32 {
    let mut weights = clause[1..]
        .iter()
        .filter_map(|part| part.strip_prefix("q="));
    let weight = weights.next().and_then(|text| text.parse::<f32>().ok());
    (weight.unwrap_or(1.0).clamp(0.0, 1.0) * 1000.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_supported_format_is_chosen() {
        const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
        const OLD: &str = "application/json;as=Table;v=v1beta1;g=meta.k8s.io";
        const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
        for (accept, query, format) in [
            ("", "", Some(ResponseFormat::Object)),
            ("*/*", "", Some(ResponseFormat::Object)),
            (
                "text/html, application/json",
                "",
                Some(ResponseFormat::Object),
            ),
            (TABLE, "", Some(ResponseFormat::Table(Include::Metadata))),
            (
                TABLE,
                "includeObject=Object",
                Some(ResponseFormat::Table(Include::Object)),
            ),
            (
                TABLE,
                "includeObject=None",
                Some(ResponseFormat::Table(Include::Nothing)),
            ),
            (
                &format!("{OLD},application/json"),
                "",
                Some(ResponseFormat::Object),
            ),
            (
                &format!("{PROTOBUF},application/json"),
                "",
                Some(ResponseFormat::Protobuf),
            ),
            (
                &format!("{PROTOBUF};q=0.5, application/json"),
                "",
                Some(ResponseFormat::Object),
            ),
            (
                &format!("{PROTOBUF};stream=watch"),
                "",
                Some(ResponseFormat::Protobuf),
            ),
            (
                &format!("{PROTOBUF};as=Table;v=v1;g=meta.k8s.io,{TABLE}"),
                "",
                Some(ResponseFormat::Table(Include::Metadata)),
            ),
            (OLD, "", None),
            ("application/yaml", "", None),
            ("text/html", "", None),
        ] {
            let query = Query::parse(Some(query)).unwrap();
            let found = ResponseFormat::of(accept, &query);
            assert_eq!(found.as_ref().ok(), format.as_ref(), "{accept}");
            if let Err(error) = found {
                assert_eq!((error.code, error.reason.as_str()), (406, "NotAcceptable"));
            }
        }
    }
}
