//! What is written is read back as it was.

use proptest::prelude::*;
use rubelet_yaml::{documents, to_yaml};
use serde_json::{Map, Value};

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,12}",
        "[a-z0-9:#.\\-]{1,8}",
        "[a-z\\n \\t#|>-]{0,16}",
        any::<String>(),
        prop::sample::select(vec![
            "yes",
            "~",
            "null",
            "0644",
            "1e3",
            ".inf",
            "<<",
            "---",
            "- a",
            "a:",
            "!x",
            "&a",
            "*a",
            "",
            "? a",
            "1_000",
            "0x1",
            "...",
            "-",
            ".5",
            "1:20",
            "%x",
            "a\n\n",
            "\n",
            "=",
            "\u{feff}x",
        ])
        .prop_map(str::to_owned),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        (-1000..1000_i32).prop_map(|n| Value::from(f64::from(n) + 0.5)),
        text().prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((text(), inner), 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn any_value_survives_writing_and_reading(value in value()) {
        let yaml = to_yaml(&value);
        let documents = documents(&yaml).map_err(|error| {
            TestCaseError::fail(format!("{error}\n{yaml}"))
        })?;
        let read = documents.first().map_or(&Value::Null, |document| document.value());
        prop_assert_eq!(read, &value, "{}", yaml);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in any::<String>()) {
        let _ = documents(&text);
    }
}
