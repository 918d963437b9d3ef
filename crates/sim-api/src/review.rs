//! Token reviews and subject access reviews.

use serde_json::{Value, json};

use crate::{StatusError, authentication, meta, request::Request, state::ServerState, user::User};

/// Performs a review.
pub(crate) fn create(
    shared: &ServerState,
    request: &Request,
    mut review: Value,
) -> Result<Value, StatusError> {
    let kind = request.kind();
    review["apiVersion"] = kind.api_version().into();
    review["kind"] = kind.kind.into();
    review["metadata"] = json!({});
    review["status"] = match kind.plural {
        "tokenreviews" => token(shared, &review)?,
        "selfsubjectaccessreviews" => access(shared, &request.user, &review),
        _ => {
            let user = asked_user(&review);
            if user.name.is_empty() && user.groups.is_empty() {
                let message = "at least one of user or group must be specified";
                return Err(StatusError::bad_request(message));
            }
            access(shared, &user, &review)
        }
    };
    Ok(review)
}

fn token(shared: &ServerState, review: &Value) -> Result<Value, StatusError> {
    let token = meta::text(review, "/spec/token");
    if token.is_empty() {
        let message = "token is required for TokenReview in authentication";
        return Err(StatusError::bad_request(message));
    }
    let asked = meta::entries(review, "/spec/audiences").iter();
    let mut asked: Vec<String> = asked
        .filter_map(|one| one.as_str().map(str::to_owned))
        .collect();
    if asked.is_empty() {
        asked = shared.config().audiences;
    }
    Ok(match authentication::of_token(shared, token, &asked) {
        Ok(found) => json!({
            "authenticated": true,
            "user": found.user.to_json(),
            "audiences": found.audiences,
        }),
        Err(why) => json!({ "user": {}, "error": why }),
    })
}

fn asked_user(review: &Value) -> User {
    let groups = meta::entries(review, "/spec/groups").iter();
    User {
        name: meta::text(review, "/spec/user").to_owned(),
        uid: meta::text(review, "/spec/uid").to_owned(),
        groups: groups
            .filter_map(|one| one.as_str().map(str::to_owned))
            .collect(),
        ..User::default()
    }
}

fn access(shared: &ServerState, user: &User, review: &Value) -> Value {
    let (verb, resource) = match review.pointer("/spec/resourceAttributes") {
        Some(attributes) if !attributes.is_null() => {
            let plural = meta::text(attributes, "/resource");
            let resource = match meta::text(attributes, "/subresource") {
                "" => plural.to_owned(),
                subresource => format!("{plural}/{subresource}"),
            };
            (meta::text(attributes, "/verb"), resource)
        }
        _ => (
            meta::text(review, "/spec/nonResourceAttributes/verb"),
            meta::text(review, "/spec/nonResourceAttributes/path").to_owned(),
        ),
    };
    if shared.access().is_review_allowed(user, verb, &resource) {
        json!({ "allowed": true, "reason": "allowed by an access rule" })
    } else {
        json!({ "allowed": false })
    }
}
