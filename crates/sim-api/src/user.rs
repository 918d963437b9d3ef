//! Users.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// A user.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct User {
    /// The name, such as `system:node:worker-1`.
    pub name: String,
    /// The identifier, if there is one.
    pub uid: String,
    /// The groups, such as `system:nodes`.
    pub groups: Vec<String>,
    /// Extra attributes.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user with groups.
    #[must_use]
    pub fn new(name: &str, groups: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            groups: groups.iter().map(|&group| group.to_owned()).collect(),
            ..Self::default()
        }
    }

    /// The user of a node.
    #[must_use]
    pub fn node(node: &str) -> Self {
        Self::new(&format!("system:node:{node}"), &["system:nodes"])
    }

    /// An administrator.
    #[must_use]
    pub fn admin() -> Self {
        Self::new("admin", &["system:masters"])
    }

    /// The anonymous user.
    #[must_use]
    pub fn anonymous() -> Self {
        Self::new("system:anonymous", &["system:unauthenticated"])
    }

    /// The node of this user, if it is one.
    #[must_use]
    pub fn node_name(&self) -> Option<&str> {
        if !self.is_in("system:nodes") {
            return None;
        }
        self.name.strip_prefix("system:node:")
    }

    /// Whether the user is a member of this group.
    #[must_use]
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|found| found == group)
    }

    /// Whether the user is not anonymous.
    pub(crate) fn is_authenticated(&self) -> bool {
        !self.is_in("system:unauthenticated")
    }

    /// Adds the group of all authenticated users.
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
