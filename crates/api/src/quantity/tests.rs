//! Tests of `quantity`.

use super::{Quantity, QuantityError};

#[test]
fn every_suffix_has_its_value() {
    for (text, milli) in [
        ("0", 0),
        ("1", 1_000),
        ("+1", 1_000),
        ("250m", 250),
        ("0.5", 500),
        (".5", 500),
        ("5.", 5_000),
        ("1e3", 1_000_000),
        ("1E3", 1_000_000),
        ("15e-1", 1_500),
        ("1k", 1_000_000),
        ("1M", 1_000_000_000),
        ("1G", 1_000_000_000_000),
        ("1T", 1_000_000_000_000_000),
        ("1P", 1_000_000_000_000_000_000),
        ("1E", 1_000_000_000_000_000_000_000),
        ("1Ki", 1_024_000),
        ("1.5Gi", 1_610_612_736_000),
        ("1Mi", 1_048_576_000),
        ("1Ti", 1_099_511_627_776_000),
        ("1Pi", 1_125_899_906_842_624_000),
        ("1Ei", 1_152_921_504_606_846_976_000),
        ("100u", 1),
        ("1n", 1),
        ("0.0000000000001", 1),
        ("1500n", 1),
        ("00012", 12_000),
    ] {
        assert_eq!(
            Quantity::parse(text).map(Quantity::milli),
            Ok(milli),
            "{text}"
        );
    }
}

#[test]
fn fractions_of_a_unit_are_rounded_up() {
    assert_eq!(Quantity::parse("100m").map(Quantity::units), Ok(1));
    assert_eq!(Quantity::parse("1.1Ki").map(Quantity::units), Ok(1127));
    assert_eq!(
        Quantity::parse("1.0000000000000000000000000000001").map(Quantity::units),
        Ok(2)
    );
}

#[test]
fn an_invalid_quantity_is_refused() {
    for text in ["", "-", "Mi", "1.2.3", "one", " 1", "."] {
        assert_eq!(
            Quantity::parse(text),
            Err(QuantityError::Number),
            "{text:?}"
        );
    }
    for (text, suffix) in [
        ("1mi", "mi"),
        ("1 Gi", " Gi"),
        ("1GB", "GB"),
        ("1K", "K"),
        ("1e", "e"),
    ] {
        assert_eq!(
            Quantity::parse(text),
            Err(QuantityError::Suffix(suffix.into())),
            "{text}"
        );
    }
    for text in [
        "9223372036854775808",
        "8Ei",
        "1e30",
        "99999999999999999999999999999999999999999999",
    ] {
        assert_eq!(
            Quantity::parse(text),
            Err(QuantityError::TooLarge),
            "{text}"
        );
    }
    assert_eq!(
        Quantity::parse("9223372036854775807").map(Quantity::units),
        Ok(i64::MAX as u64)
    );
}

#[test]
fn quantities_compare_by_value_and_keep_their_sign() {
    assert_eq!(Quantity::parse("1000m"), Quantity::parse("1"));
    assert!(Quantity::parse("-1").is_ok_and(Quantity::is_negative));
    assert!(Quantity::parse("1Gi").unwrap() > Quantity::parse("1G").unwrap());
    assert_eq!(Quantity::parse("-5").map(Quantity::units), Ok(0));
}
