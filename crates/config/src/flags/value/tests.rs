//! Tests of `value`.

use super::{FlagKind, combine, parse, read};
use serde_json::{Value, json};

#[test]
fn values_are_parsed_as_pflag_parses_them() {
    for (kind, text, expected) in [
        (FlagKind::Bool, "T", json!(true)),
        (FlagKind::Bool, "0", json!(false)),
        (FlagKind::Int32, "0x10", json!(16)),
        (FlagKind::Int32, "-010", json!(-8)),
        (FlagKind::Int64, "+7", json!(7)),
        (FlagKind::Duration, "1m30s", json!("1m30s")),
        (FlagKind::AnyDuration, "-1s", json!("-1s")),
        (FlagKind::Ip, "::", json!("::")),
        (
            FlagKind::NodeIps,
            "10.0.0.1,fd00::1",
            json!("10.0.0.1,fd00::1"),
        ),
        (FlagKind::List, "a,b", json!(["a", "b"])),
        (FlagKind::List, "\"a,b\",\"c\"\"d\"", json!(["a,b", "c\"d"])),
        (FlagKind::List, "", json!([])),
        (
            FlagKind::Map,
            "cpu=1, memory = 2Gi,",
            json!({"cpu": "1", "memory": "2Gi"}),
        ),
        (FlagKind::Labels, "a=b,c", json!({"a": "b", "c": ""})),
        (FlagKind::Pair, "a=b,c=d", json!({"a": "b,c=d"})),
        (
            FlagKind::BoolMap,
            "A=true,B=0",
            json!({"A": true, "B": false}),
        ),
        (
            FlagKind::Thresholds,
            "memory.available<5%",
            json!({"memory.available": "5%"}),
        ),
        (
            FlagKind::Headers,
            "a:1,b:2,a:3",
            json!({"a": ["1", "3"], "b": ["2"]}),
        ),
        (
            FlagKind::Taints,
            "a=b:NoSchedule,c:NoExecute",
            json!([
                {"key": "a", "value": "b", "effect": "NoSchedule"},
                {"key": "c", "value": "", "effect": "NoExecute"},
            ]),
        ),
        (
            FlagKind::ReservedMemory,
            "0:memory=1Gi,hugepages-1Gi=2Gi;1:memory=3",
            json!([
                {"numaNode": 0, "limits": {"memory": "1Gi", "hugepages-1Gi": "2Gi"}},
                {"numaNode": 1, "limits": {"memory": "3"}},
            ]),
        ),
        (FlagKind::Level, "4", json!(4)),
        (
            FlagKind::Patterns,
            "pleg=5,",
            json!([{"filePattern": "pleg", "verbosity": 5}]),
        ),
    ] {
        assert_eq!(parse(kind, text), Ok(expected), "{kind:?} {text}");
    }
}

#[test]
fn invalid_values_are_refused() {
    for (kind, text) in [
        (FlagKind::Bool, "yes"),
        (FlagKind::Int32, "3000000000"),
        (FlagKind::Int32, "1.5"),
        (FlagKind::Int64, "--1"),
        (FlagKind::Duration, "10"),
        (FlagKind::Ip, "localhost"),
        (FlagKind::NodeIps, "10.0.0.1,10.0.0.2"),
        (FlagKind::List, "\"a"),
        (FlagKind::Map, "cpu"),
        (FlagKind::BoolMap, "A=yes"),
        (FlagKind::Thresholds, "memory.available=5%"),
        (FlagKind::Headers, "a"),
        (FlagKind::Taints, "a"),
        (FlagKind::ReservedMemory, "memory=1Gi"),
        (FlagKind::Level, "-1"),
        (FlagKind::Patterns, "=1"),
        (FlagKind::Quantity, "many"),
    ] {
        assert!(read(kind, text).is_err(), "{kind:?} {text}");
    }
}

#[test]
fn lists_and_mappings_grow_and_the_rest_is_replaced() {
    let twice = |kind, one: &str, two: &str| -> Value {
        let mut value = read(kind, one).unwrap();
        combine(kind, &mut value, read(kind, two).unwrap());
        value
    };
    assert_eq!(twice(FlagKind::List, "a", "b,c"), json!(["a", "b", "c"]));
    assert_eq!(
        twice(FlagKind::Map, "a=1,b=1", "b=2"),
        json!({"a": "1", "b": "2"})
    );
    assert_eq!(
        twice(FlagKind::Headers, "a:1", "a:2"),
        json!({"a": ["1", "2"]})
    );
    assert_eq!(twice(FlagKind::Text, "a", "b"), json!("b"));
    let taints = twice(FlagKind::Taints, "a:NoSchedule", "b:NoSchedule");
    assert_eq!(
        taints,
        json!([{"key": "b", "value": "", "effect": "NoSchedule"}])
    );
}
