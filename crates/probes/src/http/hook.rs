//! An httpGet hook: any response is success.

use http::{HeaderValue, header};
use rubelet_api::probe::HttpGet;
use tokio::time::{Instant, timeout_at};

use super::redirect_chain::RedirectChain;
use crate::{
    report::{ProbeFailure, ProbeOutcome},
    target,
    tls::{PLAIN_HTTP, Tls},
    words,
};

/// One attempt. If an HTTPS hook gets a response in plain HTTP, it is retried once without TLS and
/// without its `Authorization`.
///
/// # Errors
/// No response; of two attempts, the first one's error is reported.
pub(crate) async fn attempt(
    tls: &Tls,
    user_agent: &HeaderValue,
    get: &HttpGet,
    default_host: &str,
    deadline: Instant,
) -> Result<(ProbeOutcome, String), ProbeFailure> {
    let mut secure = super::redirect_chain(tls, user_agent, get, get.https, default_host)?;
    let Err(failure) = finish(&mut secure, deadline).await else {
        return Ok((ProbeOutcome::Passed, String::new()));
    };
    if !failure.text.ends_with(PLAIN_HTTP) {
        return Err(failure);
    }
    let mut get = get.clone();
    get.headers
        .retain(|(name, _)| !name.eq_ignore_ascii_case(header::AUTHORIZATION.as_str()));
    let mut plain = super::redirect_chain(tls, user_agent, &get, false, default_host)?;
    match finish(&mut plain, deadline).await {
        Err(_) => Err(failure),
        Ok(()) => {
            let host = target::host(get.host.as_deref(), default_host)?;
            let host = words::joined(host, target::port(&get.port)?);
            let text = format!(
                "request to HTTPS lifecycle hook {host} got HTTP response, \
                 retry with HTTP succeeded"
            );
            Ok((ProbeOutcome::Warned, text))
        }
    }
}

async fn finish(
    redirect_chain: &mut RedirectChain<'_>,
    deadline: Instant,
) -> Result<(), ProbeFailure> {
    let Ok(answer) = timeout_at(deadline, redirect_chain.answer(deadline)).await else {
        return Err(ProbeFailure::timed_out(
            redirect_chain.said("context deadline exceeded"),
        ));
    };
    // Read so that the server does not see a reset; the content is ignored.
    let _ = timeout_at(deadline, answer?.read()).await;
    Ok(())
}
