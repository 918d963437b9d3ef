//! An httpGet probe: status 200 to 399 is success.

mod answer;
mod chain;
mod escape;
mod headers;
pub(crate) mod hook;
mod one;
mod two;
mod url;

use http::HeaderValue;
use rubelet_api::probe::HttpGet;
use tokio::time::{Instant, timeout_at};

use self::{chain::Chain, headers::Headers, url::Url};
use crate::{
    report::{Trouble, Verdict},
    target,
    tls::Tls,
};

/// One attempt.
///
/// # Errors
/// Every text names the URL, except where there is none.
pub(crate) async fn attempt(
    tls: &Tls,
    user_agent: &HeaderValue,
    get: &HttpGet,
    default_host: &str,
    deadline: Instant,
) -> Result<(Verdict, String), Trouble> {
    let mut chain = chain(tls, user_agent, get, get.https, default_host)?;
    let Ok(answer) = timeout_at(deadline, chain.answer(deadline)).await else {
        return Err(Trouble::timed_out(chain.said(
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
            Err(text.to_owned())
        });
    let body = body.map_err(Trouble::errored)?;
    let body = String::from_utf8(body)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    match status {
        200..300 => Ok((Verdict::Passed, body)),
        300..400 => Ok((
            Verdict::Warned,
            format!("Probe terminated redirects, Response body: {body}"),
        )),
        _ => Err(Trouble::failed(format!(
            "HTTP probe failed with statuscode: {status}"
        ))),
    }
}

fn chain<'a>(
    tls: &'a Tls,
    user_agent: &HeaderValue,
    get: &HttpGet,
    https: bool,
    default_host: &str,
) -> Result<Chain<'a>, Trouble> {
    let host = target::host(get.host.as_deref(), default_host)?;
    let port = target::port(&get.port)?;
    let url = Url::new(https, host, port, &get.path).map_err(Trouble::errored)?;
    let headers = Headers::new(&get.headers, user_agent)
        .map_err(|text| Trouble::failed(chain::about(&url.to_string(), &text)))?;
    Ok(Chain::new(tls, url, headers))
}
