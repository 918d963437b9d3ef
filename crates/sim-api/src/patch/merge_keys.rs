//! Lists that a strategic merge patch merges, and their keys. All other lists are replaced. Source: the
//! tags `patchStrategy` and `patchMergeKey` of the API's types.

use crate::Kind;

/// The fields of a type that have a merge strategy, or that contain such fields.
pub(super) type Schema = &'static [(&'static str, Field)];

/// Merge strategy of a field.
#[derive(Debug)]
pub(super) enum Field {
    /// A list of objects that are merged by a key.
    Keyed(&'static str, Schema),
    /// A list of primitive values, without duplicates.
    Set,
    /// An object.
    Object(Schema),
}

use Field::{Keyed, Object, Set};

/// The schema of a kind.
pub(super) fn of_kind(kind: &Kind) -> Schema {
    match kind.kind {
        "Pod" => POD,
        "Node" => NODE,
        "Namespace" => NAMESPACE,
        "Service" => SERVICE,
        "ServiceAccount" => SERVICE_ACCOUNT,
        "CSINode" => CSI_NODE,
        _ => OTHER,
    }
}

/// The merge strategy of a field.
pub(super) fn field(schema: Schema, name: &str) -> Option<&'static Field> {
    let mut fields = schema.iter();
    fields
        .find(|(known, _)| *known == name)
        .map(|(_, field)| field)
}

const META: (&str, Field) = (
    "metadata",
    Object(&[("finalizers", Set), ("ownerReferences", Keyed("uid", &[]))]),
);

/// A `status` with conditions only.
const CONDITIONS: (&str, Field) = ("status", Object(&[("conditions", Keyed("type", &[]))]));

const OTHER: Schema = &[META];

const NAMESPACE: Schema = &[META, CONDITIONS];

const SERVICE: Schema = &[
    META,
    ("spec", Object(&[("ports", Keyed("port", &[]))])),
    CONDITIONS,
];

const SERVICE_ACCOUNT: Schema = &[META, ("secrets", Keyed("name", &[]))];

const CSI_NODE: Schema = &[META, ("spec", Object(&[("drivers", Keyed("name", &[]))]))];

const NODE: Schema = &[
    META,
    ("spec", Object(&[("podCIDRs", Set)])),
    (
        "status",
        Object(&[
            ("addresses", Keyed("type", &[])),
            ("conditions", Keyed("type", &[])),
        ]),
    ),
];

const POD: Schema = &[
    META,
    (
        "spec",
        Object(&[
            ("containers", Keyed("name", CONTAINER)),
            ("ephemeralContainers", Keyed("name", CONTAINER)),
            ("hostAliases", Keyed("ip", &[])),
            ("imagePullSecrets", Keyed("name", &[])),
            ("initContainers", Keyed("name", CONTAINER)),
            ("resourceClaims", Keyed("name", &[])),
            ("schedulingGates", Keyed("name", &[])),
            ("topologySpreadConstraints", Keyed("topologyKey", &[])),
            ("volumes", Keyed("name", &[])),
        ]),
    ),
    (
        "status",
        Object(&[
            ("conditions", Keyed("type", &[])),
            ("hostIPs", Keyed("ip", &[])),
            ("podIPs", Keyed("ip", &[])),
            ("resourceClaimStatuses", Keyed("name", &[])),
        ]),
    ),
];

const CONTAINER: Schema = &[
    ("env", Keyed("name", &[])),
    ("ports", Keyed("containerPort", &[])),
    ("volumeDevices", Keyed("devicePath", &[])),
    ("volumeMounts", Keyed("mountPath", &[])),
];
