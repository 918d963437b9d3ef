//! Responses of plain text.

use http::{Response, StatusCode};
use rubelet_http_core::respond::{self, Body};

/// The response for a path that does not exist.
pub(super) fn nowhere() -> Response<Body> {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

pub(super) fn text(code: StatusCode, text: &str) -> Response<Body> {
    respond::text(code, text.to_owned())
}
