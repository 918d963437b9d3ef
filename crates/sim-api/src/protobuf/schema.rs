//! Which fields the kinds have. Source of the numbers: the API's published `.proto` files.

/// How a field is read.
pub(super) enum Field {
    Text,
    /// Base64 in JSON.
    Bytes,
    Number,
    Flag,
    Time,
    Message(Schema),
    Texts,
    Messages(Schema),
    TextMap,
    BytesMap,
}

/// Number, name in JSON and form of each field.
pub(super) type Schema = &'static [(u8, &'static str, Field)];

use Field::{Bytes, BytesMap, Flag, Message, Messages, Number, Text, TextMap, Texts, Time};

/// The schema of a kind, for those that are read.
pub(super) fn of_kind(kind: &str) -> Option<Schema> {
    Some(match kind {
        "Namespace" => &[(1, "metadata", Message(METADATA))],
        "ConfigMap" => &[
            (1, "metadata", Message(METADATA)),
            (2, "data", TextMap),
            (3, "binaryData", BytesMap),
            (4, "immutable", Flag),
        ],
        "Secret" => &[
            (1, "metadata", Message(METADATA)),
            (2, "data", BytesMap),
            (3, "type", Text),
            (4, "stringData", TextMap),
            (5, "immutable", Flag),
        ],
        "ServiceAccount" => &[
            (1, "metadata", Message(METADATA)),
            (2, "secrets", Messages(REFERENCE)),
            (3, "imagePullSecrets", Messages(&[(1, "name", Text)])),
            (4, "automountServiceAccountToken", Flag),
        ],
        "Binding" => &[
            (1, "metadata", Message(METADATA)),
            (2, "target", Message(REFERENCE)),
        ],
        "Eviction" => &[
            (1, "metadata", Message(METADATA)),
            (2, "deleteOptions", Message(DELETE_OPTIONS)),
        ],
        "DeleteOptions" => DELETE_OPTIONS,
        "TokenRequest" => &[
            (1, "metadata", Message(METADATA)),
            (2, "spec", Message(TOKEN_REQUEST)),
        ],
        "CertificateSigningRequest" => &[
            (1, "metadata", Message(METADATA)),
            (2, "spec", Message(CERTIFICATE_REQUEST)),
            (3, "status", Message(CERTIFICATE_STATUS)),
        ],
        "SelfSubjectAccessReview" => &[
            (1, "metadata", Message(METADATA)),
            (2, "spec", Message(ACCESS_REVIEW)),
        ],
        _ => return None,
    })
}

pub(super) const ENVELOPE: Schema = &[
    (
        1,
        "typeMeta",
        Message(&[(1, "apiVersion", Text), (2, "kind", Text)]),
    ),
    (2, "raw", Bytes),
];

pub(super) const TIME: Schema = &[(1, "seconds", Number)];

const METADATA: Schema = &[
    (1, "name", Text),
    (2, "generateName", Text),
    (3, "namespace", Text),
    (5, "uid", Text),
    (6, "resourceVersion", Text),
    (8, "creationTimestamp", Time),
    (11, "labels", TextMap),
    (12, "annotations", TextMap),
    (13, "ownerReferences", Messages(OWNER)),
    (14, "finalizers", Texts),
];

const OWNER: Schema = &[
    (1, "kind", Text),
    (3, "name", Text),
    (4, "uid", Text),
    (5, "apiVersion", Text),
    (6, "controller", Flag),
    (7, "blockOwnerDeletion", Flag),
];

const REFERENCE: Schema = &[
    (1, "kind", Text),
    (2, "namespace", Text),
    (3, "name", Text),
    (4, "uid", Text),
    (5, "apiVersion", Text),
    (6, "resourceVersion", Text),
    (7, "fieldPath", Text),
];

const DELETE_OPTIONS: Schema = &[
    (1, "gracePeriodSeconds", Number),
    (
        2,
        "preconditions",
        Message(&[(1, "uid", Text), (2, "resourceVersion", Text)]),
    ),
    (4, "propagationPolicy", Text),
    (5, "dryRun", Texts),
];

const TOKEN_REQUEST: Schema = &[
    (1, "audiences", Texts),
    (
        3,
        "boundObjectRef",
        Message(&[
            (1, "kind", Text),
            (2, "apiVersion", Text),
            (3, "name", Text),
            (4, "uid", Text),
        ]),
    ),
    (4, "expirationSeconds", Number),
];

const CERTIFICATE_REQUEST: Schema = &[
    (1, "request", Bytes),
    (5, "usages", Texts),
    (7, "signerName", Text),
    (8, "expirationSeconds", Number),
];

const CERTIFICATE_STATUS: Schema = &[
    (1, "conditions", Messages(CONDITION)),
    (2, "certificate", Bytes),
];

const CONDITION: Schema = &[
    (1, "type", Text),
    (2, "reason", Text),
    (3, "message", Text),
    (4, "lastUpdateTime", Time),
    (5, "lastTransitionTime", Time),
    (6, "status", Text),
];

const ACCESS_REVIEW: Schema = &[
    (
        1,
        "resourceAttributes",
        Message(&[
            (1, "namespace", Text),
            (2, "verb", Text),
            (3, "group", Text),
            (4, "version", Text),
            (5, "resource", Text),
            (6, "subresource", Text),
            (7, "name", Text),
        ]),
    ),
    (
        2,
        "nonResourceAttributes",
        Message(&[(1, "path", Text), (2, "verb", Text)]),
    ),
];
