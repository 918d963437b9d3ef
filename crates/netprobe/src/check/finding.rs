//! Findings of a check.

use serde::{Deserialize, Serialize};

/// A question about a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CheckKind {
    /// Whether the pod has the addresses that its status shows.
    Address,
    /// Whether the next hop of its default route is there.
    Gateway,
    /// Whether its nameservers answer.
    Dns,
    /// Whether a name is known.
    Name,
    /// Whether the Service of the API server is there.
    Service,
    /// Whether the API server is there at the address that the node uses.
    ApiServer,
    /// Whether a host beyond this node answers.
    Outside,
    /// Whether packets arrive that are as long as the interface allows.
    Mtu,
}

impl CheckKind {
    /// Its name in output.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Gateway => "gateway",
            Self::Dns => "DNS",
            Self::Name => "name",
            Self::Service => "Service",
            Self::ApiServer => "API server",
            Self::Outside => "outside",
            Self::Mtu => "MTU",
        }
    }
}

/// The result of one step of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CheckOutcome {
    /// All is well.
    Ok,
    /// Something is wrong.
    Wrong,
    /// It was not asked, or the result says nothing.
    Skipped,
}

/// The result of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The result.
    pub outcome: CheckOutcome,
    /// Details, in one line.
    pub detail: String,
    /// Advice on how to fix it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Finding {
    /// All is well.
    pub fn ok(detail: impl Into<String>) -> Self {
        Self {
            outcome: CheckOutcome::Ok,
            detail: detail.into(),
            advice: None,
        }
    }

    /// The result says nothing.
    pub fn skipped(detail: impl Into<String>) -> Self {
        Self {
            outcome: CheckOutcome::Skipped,
            ..Self::ok(detail)
        }
    }

    /// Something is wrong.
    pub fn wrong(detail: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            outcome: CheckOutcome::Wrong,
            detail: detail.into(),
            advice: Some(advice.into()),
        }
    }
}

/// One report. As JSON it is an object whose field `event` is its kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "camelCase")]
pub enum CheckEvent {
    /// A question was answered.
    Checked {
        /// The question.
        check: CheckKind,
        /// Its result.
        #[serde(flatten)]
        finding: Finding,
    },
}
