//! Content negotiation: the representation of a response, chosen by the `Accept` header.

use http::{HeaderMap, header};
use rubelet_http_core::status::ApiError;

/// Representation of objects in a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The objects themselves.
    Object,
    /// meta.k8s.io/v1 Table: rows ready to be printed.
    Table,
}

/// Picks the first form in the header that is supported. No header means [`Form::Object`].
///
/// Quality values are not weighed: Kubernetes clients list what they want in order.
///
/// # Errors
/// No form in the header is supported.
pub(crate) fn negotiate(headers: &HeaderMap) -> Result<Form, ApiError> {
    let mut wanted = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|media| !media.is_empty())
        .peekable();
    if wanted.peek().is_none() {
        return Ok(Form::Object);
    }
    wanted.find_map(form).ok_or_else(ApiError::not_acceptable)
}

fn form(media: &str) -> Option<Form> {
    let mut parts = media.split(';').map(str::trim);
    let kind = parts.next()?;
    if !["application/json", "application/*", "*/*"].contains(&kind) {
        return None;
    }
    let (mut kind, mut version, mut group) = (None, None, None);
    for (key, value) in parts.filter_map(|part| part.split_once('=')) {
        match key {
            "as" => kind = Some(value),
            "v" => version = Some(value),
            "g" => group = Some(value),
            _ => {}
        }
    }
    match (kind, group, version) {
        (None, _, _) => Some(Form::Object),
        (Some("Table"), Some("meta.k8s.io"), Some("v1")) => Some(Form::Table),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn negotiated(accept: &'static str) -> Option<Form> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        negotiate(&headers).ok()
    }

    #[test]
    fn the_first_possible_form_is_taken() {
        for (accept, form) in [
            ("", Some(Form::Object)),
            ("*/*", Some(Form::Object)),
            ("application/json", Some(Form::Object)),
            (
                "application/vnd.kubernetes.protobuf,application/json",
                Some(Form::Object),
            ),
            (
                "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
                Some(Form::Table),
            ),
            (
                "application/json;as=Table;g=meta.k8s.io;v=v1beta1, application/json;q=0.8",
                Some(Form::Object),
            ),
            (
                "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
                None,
            ),
            ("text/html", None),
        ] {
            assert_eq!(negotiated(accept), form, "{accept}");
        }
    }
}
