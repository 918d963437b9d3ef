//! Who asks.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// A user as the server knows one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct User {
    /// The name, such as `system:node:worker-1`.
    pub name: String,
    /// The identifier, if there is one.
    pub uid: String,
    /// The groups, such as `system:nodes`.
    pub groups: Vec<String>,
    /// Whatever else is known.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user of groups.
    #[must_use]
    pub fn new(name: &str, groups: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            groups: groups.iter().map(|&group| group.to_owned()).collect(),
            ..Self::default()
        }
    }

    /// The user that a node is.
    #[must_use]
    pub fn node(node: &str) -> Self {
        Self::new(&format!("system:node:{node}"), &["system:nodes"])
    }

    /// A user who may do everything.
    #[must_use]
    pub fn admin() -> Self {
        Self::new("admin", &["system:masters"])
    }

    /// Nobody in particular.
    #[must_use]
    pub fn anonymous() -> Self {
        Self::new("system:anonymous", &["system:unauthenticated"])
    }

    /// The node that this user is.
    #[must_use]
    pub fn node_name(&self) -> Option<&str> {
        if !self.is_in("system:nodes") {
            return None;
        }
        self.name.strip_prefix("system:node:")
    }

    /// True for a member of that group.
    #[must_use]
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|found| found == group)
    }

    /// True unless it is nobody in particular.
    pub(crate) fn is_authenticated(&self) -> bool {
        !self.is_in("system:unauthenticated")
    }

    /// With the group that all users are in who proved who they are.
    pub(crate) fn authenticated(mut self) -> Self {
        const ALL: &str = "system:authenticated";
        if self.is_authenticated() && !self.is_in(ALL) {
            self.groups.push(ALL.to_owned());
        }
        self
    }

    /// `status.user` of a token review.
    pub(crate) fn to_json(&self) -> Value {
        let mut user = json!({ "username": self.name, "groups": self.groups });
        if !self.uid.is_empty() {
            user["uid"] = self.uid.as_str().into();
        }
        if !self.extra.is_empty() {
            user["extra"] = json!(self.extra);
        }
        user
    }
}
