//! An httpGet probe: status 200 to 399 is success.

mod escape;
mod headers;
pub(crate) mod hook;
mod one;
mod redirect_chain;
mod response;
mod two;
mod url;

use http::HeaderValue;
use rubelet_api::probe::HttpGet;
use tokio::time::{Instant, timeout_at};

use self::{headers::Headers, redirect_chain::RedirectChain, url::Url};
use crate::{
    report::{ProbeFailure, ProbeOutcome},
    target,
    tls::Tls,
};

/// The body of a response was truncated, with the message of Go's client.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct BodyError(String);

/// One attempt.
///
/// # Errors
/// Every message names the URL, except if it could not be built.
pub(crate) async fn attempt(
    tls: &Tls,
    user_agent: &HeaderValue,
    get: &HttpGet,
    default_host: &str,
    deadline: Instant,
) -> Result<(ProbeOutcome, String), ProbeFailure> {
    let mut redirect_chain = redirect_chain(tls, user_agent, get, get.https, default_host)?;
    let Ok(answer) = timeout_at(deadline, redirect_chain.answer(deadline)).await else {
        return Err(ProbeFailure::timed_out(redirect_chain.said(
            "context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
        )));
    };
    let answer = answer?;
    let status = answer.status().as_u16();
    let body = timeout_at(deadline, answer.read())
        .await
        .unwrap_or_else(|_| {
            let text = "context deadline exceeded \
                    (Client.Timeout or context cancellation while reading body)";
            Err(BodyError(text.to_owned()))
        });
    let body = body.map_err(|error| ProbeFailure::errored(error.to_string()))?;
    let body = String::from_utf8(body)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    match status {
        200..300 => Ok((ProbeOutcome::Passed, body)),
        300..400 => Ok((
            ProbeOutcome::Warned,
            format!("Probe terminated redirects, Response body: {body}"),
        )),
        _ => Err(ProbeFailure::failed(format!(
            "HTTP probe failed with statuscode: {status}"
        ))),
    }
}

fn redirect_chain<'a>(
    tls: &'a Tls,
    user_agent: &HeaderValue,
    get: &HttpGet,
    https: bool,
    default_host: &str,
) -> Result<RedirectChain<'a>, ProbeFailure> {
    let host = target::host(get.host.as_deref(), default_host)?;
    let port = target::port(&get.port)?;
    let url = Url::new(https, host, port, &get.path)
        .map_err(|error| ProbeFailure::errored(error.to_string()))?;
    let headers = Headers::new(&get.headers, user_agent).map_err(|error| {
        ProbeFailure::failed(redirect_chain::about(&url.to_string(), &error.to_string()))
    })?;
    Ok(RedirectChain::new(tls, url, headers))
}
