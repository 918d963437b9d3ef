//! Authentication and authorization of requests.

use std::sync::Arc;

use http::{HeaderMap, Method, StatusCode, header};
use rubelet_http_core::user::{Authenticator, Authorizer, User};
use rustls::pki_types::CertificateDer;

use super::{attributes::attributes, client_ca::ClientCa, path::CleanPath};

/// Access control of the port.
pub struct Access {
    /// `authentication.x509.clientCAFile`; without it no client certificate is requested.
    pub client_ca: Option<Arc<ClientCa>>,
    /// `authentication.anonymous.enabled`: whether requests without credentials are authenticated
    /// as anonymous.
    pub anonymous: bool,
    /// `authentication.webhook`; without it tokens are ignored.
    pub authenticator: Option<Arc<dyn Authenticator>>,
    /// `authorization`.
    pub authorizer: Arc<dyn Authorizer>,
    /// Name of the node: rights refer to it.
    pub node: Arc<str>,
    /// Gate `KubeletFineGrainedAuthz`: rights on `pods`, `healthz` and `configz` count beside those
    /// on `proxy`.
    pub fine_grained: bool,
}

/// Why access is denied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AccessDenied {
    pub(super) code: StatusCode,
    /// The kubelet's wording: programs match on it.
    pub(super) text: String,
    /// The user, if authenticated.
    pub(super) user: Option<User>,
}

impl AccessDenied {
    fn unauthorized() -> Self {
        Self {
            code: StatusCode::UNAUTHORIZED,
            text: "Unauthorized".to_owned(),
            user: None,
        }
    }
}

impl Access {
    /// Authenticates and authorizes a request.
    pub(super) async fn check(
        &self,
        certificates: &[CertificateDer<'static>],
        method: &Method,
        path: &CleanPath,
        headers: &HeaderMap,
    ) -> Result<User, AccessDenied> {
        let user = self.authenticate(certificates, headers).await?;
        self.authorize(&user, method, path).await?;
        Ok(user)
    }

    /// The user of the first valid credential. An invalid one does not fall back to anonymous.
    async fn authenticate(
        &self,
        certificates: &[CertificateDer<'static>],
        headers: &HeaderMap,
    ) -> Result<User, AccessDenied> {
        let mut bad = false;
        if let Some(ca) = self.client_ca.as_ref().filter(|_| !certificates.is_empty()) {
            match ca.bundle().await.user(certificates) {
                Ok(Some(user)) => return Ok(user.authenticated()),
                Ok(None) => {}
                Err(error) => {
                    tracing::debug!(%error, "Ignoring a client certificate");
                    bad = true;
                }
            }
        }
        if let Some(authenticator) = &self.authenticator
            && let Some(token) = bearer(headers)
        {
            match authenticator.token(token).await {
                Ok(Some(user)) => return Ok(user.authenticated()),
                Ok(None) => bad = true,
                Err(error) => {
                    tracing::warn!(%error, "Cannot authenticate the bearer token of a request");
                    bad = true;
                }
            }
        }
        if self.anonymous && !bad {
            return Ok(User::anonymous());
        }
        Err(AccessDenied::unauthorized())
    }

    async fn authorize(
        &self,
        user: &User,
        method: &Method,
        path: &CleanPath,
    ) -> Result<(), AccessDenied> {
        let asked = attributes(method, path, &self.node, self.fine_grained);
        let mut names = Vec::with_capacity(asked.len());
        for attributes in &asked {
            names.push(attributes.subresource);
            match self.authorizer.authorize(user, attributes).await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(%error, user = user.name, "Cannot authorize a request");
                    return Err(AccessDenied {
                        code: StatusCode::INTERNAL_SERVER_ERROR,
                        text: format!(
                            "Authorization error (user={}, verb={}, resource=nodes, \
                             subresource={})",
                            user.name, attributes.verb, attributes.subresource
                        ),
                        user: Some(user.clone()),
                    });
                }
            }
        }
        let verb = asked.first().map_or("", |attributes| attributes.verb);
        let text = format!(
            "Forbidden (user={}, verb={verb}, resource=nodes, subresource(s)=[{}])\n",
            user.name,
            names.join(" ")
        );
        Err(AccessDenied {
            code: StatusCode::FORBIDDEN,
            text,
            user: Some(user.clone()),
        })
    }
}

/// The bearer token of a request. The scheme may be written in any case; what follows a second
/// space does not count.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?.trim();
    let mut parts = value.split(' ');
    let scheme = parts.next()?;
    let token = parts.next()?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use http::HeaderValue;
    use parking_lot::Mutex;
    use rubelet_http_core::user::{AlwaysAllow, Attributes, AuthError};

    use super::*;

    struct Tokens;

    #[async_trait]
    impl Authenticator for Tokens {
        async fn token(&self, token: &str) -> Result<Option<User>, AuthError> {
            match token {
                "good" => Ok(Some(User {
                    name: "ann".to_owned(),
                    ..User::default()
                })),
                "down" => Err(AuthError("no answer".to_owned())),
                _ => Ok(None),
            }
        }
    }

    /// Allows one sub-resource; fails for another.
    struct Only(&'static str, Mutex<Vec<String>>);

    #[async_trait]
    impl Authorizer for Only {
        async fn authorize(&self, user: &User, of: &Attributes) -> Result<bool, AuthError> {
            let asked = format!("{} {} {}", user.name, of.verb, of.subresource);
            self.1.lock().push(asked);
            match of.subresource {
                "stats" => Err(AuthError("no answer".to_owned())),
                other => Ok(other == self.0),
            }
        }
    }

    fn access(anonymous: bool, authorizer: impl Authorizer) -> Access {
        Access {
            client_ca: None,
            anonymous,
            authenticator: Some(Arc::new(Tokens)),
            authorizer: Arc::new(authorizer),
            node: "n".into(),
            fine_grained: true,
        }
    }

    async fn asked(
        access: &Access,
        path: &str,
        authorization: &str,
    ) -> Result<String, AccessDenied> {
        let mut headers = HeaderMap::new();
        if !authorization.is_empty() {
            let value = HeaderValue::from_str(authorization).unwrap();
            headers.insert(header::AUTHORIZATION, value);
        }
        let path = CleanPath::read(path).unwrap();
        let user = access.check(&[], &Method::GET, &path, &headers).await?;
        Ok(user.name)
    }

    #[tokio::test]
    async fn a_bad_credential_is_no_way_to_be_anonymous() {
        let open = access(true, AlwaysAllow);
        let closed = access(false, AlwaysAllow);
        for (authorization, with, without) in [
            ("", Some("system:anonymous"), None),
            ("Bearer good", Some("ann"), Some("ann")),
            ("bEaReR good", Some("ann"), Some("ann")),
            (" Bearer good x", Some("ann"), Some("ann")),
            ("Bearer bad", None, None),
            ("Bearer down", None, None),
            ("Bearer", Some("system:anonymous"), None),
            ("Bearer  good", Some("system:anonymous"), None),
            ("Basic good", Some("system:anonymous"), None),
        ] {
            let found = asked(&open, "/pods", authorization).await.ok();
            assert_eq!(found.as_deref(), with, "{authorization}");
            let found = asked(&closed, "/pods", authorization).await.ok();
            assert_eq!(found.as_deref(), without, "{authorization}");
        }
    }

    #[tokio::test]
    async fn tokens_say_nothing_where_nobody_knows_them() {
        let mut deaf = access(true, AlwaysAllow);
        deaf.authenticator = None;
        let user = asked(&deaf, "/pods", "Bearer bad").await;
        assert_eq!(user.unwrap(), "system:anonymous");
    }

    #[tokio::test]
    async fn the_narrow_right_is_asked_for_first_and_either_will_do() {
        let text = |refusal: AccessDenied| (refusal.code.as_u16(), refusal.text);
        let narrow = access(true, Only("pods", Mutex::default()));
        assert!(asked(&narrow, "/pods", "").await.is_ok());
        let wide = access(true, Only("proxy", Mutex::default()));
        assert!(asked(&wide, "/pods", "").await.is_ok());
        let none = access(true, Only("log", Mutex::default()));
        assert_eq!(
            text(asked(&none, "/pods", "").await.unwrap_err()),
            (
                403,
                "Forbidden (user=system:anonymous, verb=get, resource=nodes, \
                 subresource(s)=[pods proxy])\n"
                    .to_owned()
            )
        );
        assert_eq!(
            text(asked(&none, "/containerLogs/a/b/c", "").await.unwrap_err()).1,
            "Forbidden (user=system:anonymous, verb=get, resource=nodes, subresource(s)=[proxy])\n"
        );
    }

    #[tokio::test]
    async fn who_can_not_be_judged_is_refused() {
        let access = access(true, Only("stats", Mutex::default()));
        let refusal = asked(&access, "/stats/summary", "").await.unwrap_err();
        assert_eq!(
            (refusal.code.as_u16(), &*refusal.text),
            (
                500,
                "Authorization error (user=system:anonymous, verb=get, resource=nodes, \
                 subresource=stats)"
            )
        );
    }
}
