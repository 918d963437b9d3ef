//! An httpGet hook: any answer is success.

use http::{HeaderValue, header};
use rubelet_api::probe::HttpGet;
use tokio::time::{Instant, timeout_at};

use super::chain::Chain;
use crate::{
    report::{Trouble, Verdict},
    target,
    tls::{PLAIN_HTTP, Tls},
    words,
};

/// One attempt. Where an HTTPS hook is answered in plain HTTP, it is tried once more without TLS
/// and without its `Authorization`.
///
/// # Errors
/// No answer came; of two attempts, the first one's reason counts.
pub(crate) async fn attempt(
    tls: &Tls,
    user_agent: &HeaderValue,
    get: &HttpGet,
    default_host: &str,
    deadline: Instant,
) -> Result<(Verdict, String), Trouble> {
    let mut secure = super::chain(tls, user_agent, get, get.https, default_host)?;
    let Err(trouble) = finish(&mut secure, deadline).await else {
        return Ok((Verdict::Passed, String::new()));
    };
    if !trouble.text.ends_with(PLAIN_HTTP) {
        return Err(trouble);
    }
    let mut get = get.clone();
    get.headers
        .retain(|(name, _)| !name.eq_ignore_ascii_case(header::AUTHORIZATION.as_str()));
    let mut plain = super::chain(tls, user_agent, &get, false, default_host)?;
    match finish(&mut plain, deadline).await {
        Err(_) => Err(trouble),
        Ok(()) => {
            let host = target::host(get.host.as_deref(), default_host)?;
            let host = words::joined(host, target::port(&get.port)?);
            let text = format!(
                "request to HTTPS lifecycle hook {host} got HTTP response, \
                 retry with HTTP succeeded"
            );
            Ok((Verdict::Warned, text))
        }
    }
}

async fn finish(chain: &mut Chain<'_>, deadline: Instant) -> Result<(), Trouble> {
    let Ok(answer) = timeout_at(deadline, chain.answer(deadline)).await else {
        return Err(Trouble::timed_out(chain.said("context deadline exceeded")));
    };
    // Read so that the server need not see its answer refused; what it says does not matter.
    let _ = timeout_at(deadline, answer?.read()).await;
    Ok(())
}
