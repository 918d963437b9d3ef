//! Values that many fields share.

use core::net::IpAddr;

use super::{Errors, Path};
use crate::quantity::Quantity;

/// The text without the spare room of a String; an empty one counts as not written.
pub(super) fn text(value: Option<&String>) -> Option<Box<str>> {
    value
        .filter(|text| !text.is_empty())
        .map(|text| text.as_str().into())
}

pub(super) fn texts(values: Option<&Vec<String>>) -> Vec<Box<str>> {
    values
        .into_iter()
        .flatten()
        .map(|text| text.as_str().into())
        .collect()
}

/// An empty list with room for what `list` becomes, and no more: parsed pods stay for long.
pub(super) fn room<T, U>(list: Option<&[T]>) -> Vec<U> {
    Vec::with_capacity(list.map_or(0, <[T]>::len))
}

/// The value of a keyword; the first of `known` replaces an unknown one.
pub(super) fn choice<T: Copy>(
    path: &Path<'_>,
    value: Option<&String>,
    known: &[(&str, T)],
    errors: &mut Errors,
) -> T {
    let value = value.map_or("", String::as_str);
    match known.iter().find(|(word, _)| *word == value) {
        Some((_, meaning)) => *meaning,
        None => {
            let words: Vec<&str> = known
                .iter()
                .map(|(word, _)| *word)
                .filter(|word| !word.is_empty())
                .collect();
            errors.unsupported(path, value, &words);
            known[0].1
        }
    }
}

/// A quantity that is not negative; 0 where it is malformed.
pub(super) fn quantity(path: &Path<'_>, value: &str, errors: &mut Errors) -> Quantity {
    match Quantity::parse(value) {
        Ok(quantity) if quantity.is_negative() => {
            errors.invalid(path, value, "must not be negative");
        }
        Ok(quantity) => return quantity,
        Err(error) => errors.invalid(path, value, error),
    }
    Quantity::default()
}

/// A number between two others, both included.
pub(super) fn range(path: &Path<'_>, value: i64, least: i64, most: i64, errors: &mut Errors) {
    if !(least..=most).contains(&value) {
        errors.invalid(path, value, format_args!("must be from {least} to {most}"));
    }
}

/// An IPv4 or IPv6 address.
pub(super) fn address(path: &Path<'_>, value: &str, errors: &mut Errors) {
    if value.parse::<IpAddr>().is_err() {
        errors.invalid(
            path,
            value,
            "must be an IPv4 or IPv6 address, such as 10.0.0.1 or fd00::1",
        );
    }
}

/// A path that does not lead upwards.
pub(super) fn no_way_up(path: &Path<'_>, value: &str, errors: &mut Errors) {
    if value.split('/').any(|part| part == "..") {
        errors.invalid(path, value, "must not contain '..'");
    }
}

/// A path that stays below where it starts.
pub(super) fn below(path: &Path<'_>, value: &str, errors: &mut Errors) {
    if value.starts_with('/') {
        errors.invalid(path, value, "must be a relative path");
    }
    no_way_up(path, value, errors);
}
