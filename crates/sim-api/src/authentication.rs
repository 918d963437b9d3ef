//! Who shows a token, and for whom the token is. Source of rules and texts: upstream's authenticators of service
//! account tokens (`pkg/serviceaccount`) and of tokens that know no audience.

use crate::{service_account, state::Shared, user::User};

/// Who a token stands for.
#[derive(Debug)]
pub(crate) struct Authenticated {
    pub(crate) user: User,
    /// Those of the audiences that were asked for which the token is for.
    pub(crate) audiences: Vec<String>,
}

/// The error for an unknown token.
const INVALID: &str = "invalid bearer token";

/// The user of a token that must be for one of those audiences; the error is what a token review says.
pub(crate) fn of_token(
    shared: &Shared,
    token: &str,
    asked: &[String],
) -> Result<Authenticated, String> {
    let config = shared.config();
    let common = |audiences: &[String]| -> Vec<String> {
        let audiences = audiences.iter().filter(|one| asked.contains(one));
        audiences.cloned().collect()
    };
    // Locks are taken one after the other: objects come before tokens.
    let (known, claims) = {
        let access = shared.access();
        (access.known_user(token).cloned(), access.claims(token))
    };
    if let Some(user) = known {
        // A token of no audience is for this server.
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

/// A list of texts as Go's `%q` writes it.
fn quoted(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", texts.join(" "))
}
