//! Requests and limits in whole numbers, and the quality of service that follows from them.

/// Thousandths of a core.
pub type MilliCpu = u64;

/// Bytes.
pub type Bytes = u64;

/// `resources` of a container. A limit without a request has been copied into the request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resources {
    /// `requests`.
    pub requests: ResourceAmounts,
    /// `limits`.
    pub limits: ResourceAmounts,
}

/// Amounts of what Rubelet accounts for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceAmounts {
    /// `cpu`; fractions of a thousandth are rounded up.
    pub cpu: Option<MilliCpu>,
    /// `memory`; fractions of a byte are rounded up.
    pub memory: Option<Bytes>,
    /// `hugepages-SIZE`: page size and amount, in bytes, sorted.
    pub hugepages: Vec<(Bytes, Bytes)>,
    /// `ephemeral-storage`; fractions of a byte are rounded up.
    pub ephemeral_storage: Option<Bytes>,
    /// Extended resources such as `example.com/dongle`, in whole numbers, sorted. They count for
    /// admission.
    pub extended: Vec<(Box<str>, u64)>,
}

/// `status.qosClass`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QosClass {
    /// Each container has cpu and memory limits equal to its requests.
    Guaranteed,
    /// Something is requested or limited.
    Burstable,
    /// Nothing is requested or limited.
    BestEffort,
}

impl QosClass {
    /// Each class, the best first.
    pub const ALL: [Self; 3] = [Self::Guaranteed, Self::Burstable, Self::BestEffort];

    /// The value in `status.qosClass`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Guaranteed => "Guaranteed",
            Self::Burstable => "Burstable",
            Self::BestEffort => "BestEffort",
        }
    }
}
