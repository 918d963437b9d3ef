//! Authentication by token, with audiences. Source of rules and texts: upstream's authenticators of service
//! account tokens (`pkg/serviceaccount`) and of tokens without audiences.

use crate::{service_account, state::ServerState, user::User};

/// The user of a token.
#[derive(Debug)]
pub(crate) struct Authenticated {
    pub(crate) user: User,
    /// The requested audiences that the token is valid for.
    pub(crate) audiences: Vec<String>,
}

/// The error for an unknown token.
const INVALID: &str = "invalid bearer token";

/// The user of a token that must be valid for one of these audiences; the error is that of a token
/// review.
pub(crate) fn of_token(
    shared: &ServerState,
    token: &str,
    asked: &[String],
) -> Result<Authenticated, String> {
    let config = shared.config();
    let common = |audiences: &[String]| -> Vec<String> {
        let audiences = audiences.iter().filter(|one| asked.contains(one));
        audiences.cloned().collect()
    };
    // Locks are taken one after the other, objects before tokens.
    let (known, claims) = {
        let access = shared.access();
        (access.known_user(token).cloned(), access.claims(token))
    };
    if let Some(user) = known {
        // A token without audiences is for this server.
        let audiences = common(&config.audiences);
        return match audiences.is_empty() {
            true => Err(INVALID.to_owned()),
            false => Ok(Authenticated { user, audiences }),
        };
    }
    let claims = claims.ok_or(INVALID)?;
    let meant = service_account::audiences(&claims);
    let audiences = common(&meant);
    let refused = |why: String| format!("[{INVALID}, {why}]");
    if audiences.is_empty() {
        return Err(refused(format!(
            "token audiences {} is invalid for the target audiences {}",
            quoted(&meant),
            quoted(asked)
        )));
    }
    let now = shared.clock.now();
    let validated = shared.with_store(|store| service_account::validate(&claims, store, now));
    let user = validated.map_err(refused)?;
    Ok(Authenticated { user, audiences })
}

/// A list of strings, formatted like Go's `%q`.
fn quoted(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", texts.join(" "))
}
