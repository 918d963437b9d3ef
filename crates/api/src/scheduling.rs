//! What a pod asks of its node, for admission: affinity and tolerations.

/// `affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution`: one of the terms must
/// hold. Without terms no node will do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeAffinity {
    /// `nodeSelectorTerms`.
    pub required: Vec<NodeSelectorTerm>,
}

/// One entry of `nodeSelectorTerms`: all requirements must hold. Without any, no node will do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeSelectorTerm {
    /// `matchExpressions`: about labels of the node.
    pub expressions: Vec<NodeRequirement>,
    /// `matchFields`: about fields of the node; only `metadata.name` is known.
    pub fields: Vec<NodeRequirement>,
}

/// One entry of `matchExpressions` or `matchFields`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRequirement {
    /// `key`.
    pub key: Box<str>,
    /// `operator`.
    pub operator: NodeOperator,
    /// `values`.
    pub values: Vec<Box<str>>,
}

/// `operator` of a requirement on nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeOperator {
    /// `In`.
    In,
    /// `NotIn`.
    NotIn,
    /// `Exists`.
    Exists,
    /// `DoesNotExist`.
    DoesNotExist,
    /// `Gt`: the label is a greater integer than the only value.
    Gt,
    /// `Lt`.
    Lt,
    /// One that is newer than this agent: a term with it does not hold.
    Other(Box<str>),
}

/// One entry of `tolerations`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toleration {
    /// `key`; empty means all keys.
    pub key: Box<str>,
    /// `operator`.
    pub operator: TolerationOperator,
    /// `value`.
    pub value: Box<str>,
    /// `effect`; `None` means all effects.
    pub effect: Option<TaintEffect>,
    /// `tolerationSeconds`: means something to NoExecute taints alone.
    pub seconds: Option<i64>,
}

/// `operator` of a toleration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TolerationOperator {
    /// `Equal`, or nothing.
    Equal,
    /// `Exists`.
    Exists,
    /// `Lt`.
    Lt,
    /// `Gt`.
    Gt,
    /// One that is newer than this agent: it tolerates nothing.
    Other(Box<str>),
}

/// `effect` of a toleration or a taint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaintEffect {
    /// `NoSchedule`.
    NoSchedule,
    /// `PreferNoSchedule`.
    PreferNoSchedule,
    /// `NoExecute`.
    NoExecute,
}

impl TaintEffect {
    /// The value of `effect`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }

    /// The effect of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::NoSchedule, Self::PreferNoSchedule, Self::NoExecute]
            .into_iter()
            .find(|effect| effect.as_str() == name)
    }
}
