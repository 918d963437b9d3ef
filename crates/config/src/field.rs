//! Metadata of each field of the configuration: the table from which defaults, warnings, `config
//! show` and the documentation are made.

use rubelet_base::parity::ParityVerdict;
use std::collections::BTreeMap;
use std::time::Duration;

/// One field of a section.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Name in the file.
    pub name: &'static str,
    /// Name in the code, by which a test finds what reads the field.
    pub ident: &'static str,
    /// What it does, in a sentence or two. May begin with a space.
    pub help: &'static str,
    /// The type of its values.
    pub kind: Kind,
    /// Whether zero is a value, or means that the field is not given.
    pub zero: Zero,
    /// Whether it has an effect today.
    pub effect: Effect,
}

/// The type of a field's values.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// true or false.
    Bool,
    /// A whole number.
    Integer,
    /// A number.
    Float,
    /// A string.
    Text,
    /// A duration in Go's notation, such as `1m30s`.
    Duration,
    /// A quantity such as `10Mi`, as a string or a number.
    Quantity,
    /// A list of strings.
    TextList,
    /// A list of whole numbers.
    IntegerList,
    /// A mapping of strings to strings.
    TextMap,
    /// A mapping of strings to true or false.
    BoolMap,
    /// A mapping of strings to lists of strings.
    ListMap,
    /// A list of mappings with these keys.
    ObjectList(&'static [&'static str]),
    /// A mapping with a fixed set of fields.
    Section(&'static [Field]),
}

/// Whether the zero value of a field's type is a value or means that it is not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zero {
    /// Zero counts as not given and means the default: upstream's type is not a pointer.
    Unset,
    /// Zero is a value like any other: the type is a pointer, a list or a mapping upstream.
    Counts,
}

/// Whether a field has an effect in Rubelet today.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The same effect as in the kubelet, which may be none.
    Works,
    /// The same effect as in the kubelet on a node of a cluster, and none elsewhere.
    Cluster,
    /// The effect that it has in the kubelet, and more, as described here.
    Better(&'static str),
    /// A different effect on purpose, as described here; setting it causes a warning.
    Differs(&'static str),
    /// Part of the effect, as described here; setting it causes a warning.
    Partly(&'static str),
    /// It is parsed and validated only; setting it causes a warning.
    NotYet,
}

impl Effect {
    /// How the field compares with the kubelet's.
    #[must_use]
    pub const fn verdict(self) -> ParityVerdict {
        match self {
            Self::Works | Self::Cluster => ParityVerdict::Same,
            Self::Better(_) => ParityVerdict::Better,
            Self::Differs(_) => ParityVerdict::Differs,
            Self::Partly(_) | Self::NotYet => ParityVerdict::NotYet,
        }
    }

    /// The verdict for tables, with its limitation.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cluster => "same (cluster)",
            Self::Partly(_) => "not yet (in part)",
            Self::Works | Self::Better(_) | Self::Differs(_) | Self::NotYet => {
                self.verdict().name()
            }
        }
    }
}

/// A type that a field can have.
pub trait FieldType {
    /// The kind of the type.
    const KIND: Kind;
}

macro_rules! described {
    ($($ty:ty => $kind:ident),+ $(,)?) => {
        $(impl FieldType for $ty {
            const KIND: Kind = Kind::$kind;
        })+
    };
}

described! {
    bool => Bool,
    i32 => Integer,
    i64 => Integer,
    u32 => Integer,
    f64 => Float,
    String => Text,
    Duration => Duration,
    Vec<String> => TextList,
    Vec<i32> => IntegerList,
    BTreeMap<String, String> => TextMap,
    BTreeMap<String, bool> => BoolMap,
    BTreeMap<String, Vec<String>> => ListMap,
}

impl<T: FieldType> FieldType for Option<T> {
    const KIND: Kind = T::KIND;
}

/// Calls `visit` with the path of each field, without sections.
pub(crate) fn each_leaf(
    fields: &'static [Field],
    prefix: &str,
    visit: &mut dyn FnMut(&str, &'static Field),
) {
    for field in fields {
        let path = rubelet_yaml::join_path(prefix, field.name);
        match field.kind {
            Kind::Section(inner) => each_leaf(inner, &path, visit),
            _ => visit(&path, field),
        }
    }
}

/// Declares a section of the configuration and its table. Each line reads
/// `field: type = default, "name in the file", whether zero counts, effect;`.
macro_rules! section {
    (
        $(#[doc = $about:literal])+
        pub struct $name:ident { $(
            $(#[doc = $help:literal])+
            $(#[serde($($serde:tt)+)])?
            $field:ident: $ty:ty = $default:expr, $json:literal, $zero:ident,
                $effect:ident $(($part:literal))?;
        )+ }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default)]
        pub struct $name { $(
            $(#[doc = $help])+
            #[serde(rename = $json $(, $($serde)+)?)]
            pub $field: $ty,
        )+ }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }

        impl $crate::field::FieldType for $name {
            const KIND: $crate::field::Kind = $crate::field::Kind::Section(&[ $(
                $crate::field::Field {
                    name: $json,
                    ident: stringify!($field),
                    help: concat!($($help),+),
                    kind: <$ty as $crate::field::FieldType>::KIND,
                    zero: $crate::field::Zero::$zero,
                    effect: $crate::field::Effect::$effect $(($part))?,
                },
            )+ ]);
        }
    };
}

pub(crate) use section;
