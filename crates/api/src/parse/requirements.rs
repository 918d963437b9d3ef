//! Requests and limits of containers.

use std::collections::BTreeMap;

use k8s_openapi::{api::core::v1 as k8s, apimachinery::pkg::api::resource::Quantity as Text};

use super::{Errors, Path, values::quantity};
use crate::{
    quantity::Quantity,
    resource_name::{EPHEMERAL_STORAGE, HUGEPAGES, is_hugepages},
    resources::{ResourceAmounts, Resources},
};

const KNOWN: [&str; 3] = ["cpu", "memory", "hugepages-SIZE"];

type Amounts = BTreeMap<String, Text>;

/// Converts requests and limits, and copies each limit that has no request into the requests.
pub(super) fn convert(
    resources: Option<&k8s::ResourceRequirements>,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Resources {
    let none = Amounts::new();
    let limits = resources
        .and_then(|resources| resources.limits.as_ref())
        .unwrap_or(&none);
    let requests = resources
        .and_then(|resources| resources.requests.as_ref())
        .unwrap_or(&none);
    let limits_path = path.child("limits");
    let requests_path = path.child("requests");
    let converted_limits = amounts(limits, &limits_path, errors);
    if converted_limits.ephemeral_storage.is_some() && !errors.are_relaxed() {
        errors.no_eviction(&limits_path.key(EPHEMERAL_STORAGE));
    }
    let mut converted_requests = amounts(requests, &requests_path, errors);
    for (name, request) in requests {
        let request_path = requests_path.key(name);
        let overcommits = !is_hugepages(name);
        match limits.get(name) {
            Some(limit) => compare(&request_path, &request.0, &limit.0, overcommits, errors),
            None if overcommits => {}
            None => errors.required(&limits_path.key(name), "huge pages need a limit"),
        }
    }
    let all = || limits.keys().chain(requests.keys());
    if all().any(|name| is_hugepages(name)) && !all().any(|name| name == "cpu" || name == "memory")
    {
        errors.forbidden(
            path,
            "huge pages need a request or limit of cpu or memory beside them",
        );
    }
    complete(&mut converted_requests, &converted_limits);
    Resources {
        requests: converted_requests,
        limits: converted_limits,
    }
}

pub(super) fn amounts(list: &Amounts, path: &Path<'_>, errors: &mut Errors) -> ResourceAmounts {
    let mut amounts = ResourceAmounts::default();
    for (name, text) in list {
        let path = path.key(name);
        match name.as_str() {
            "cpu" => amounts.cpu = Some(quantity(&path, &text.0, errors).milli_cpu()),
            "memory" => amounts.memory = Some(quantity(&path, &text.0, errors).units()),
            EPHEMERAL_STORAGE => {
                amounts.ephemeral_storage = Some(quantity(&path, &text.0, errors).units());
            }
            other => match other.strip_prefix(HUGEPAGES) {
                Some(size) => hugepages(&mut amounts, size, &text.0, &path, errors),
                None if other.contains('/') && errors.are_relaxed() => {
                    let amount = quantity(&path, &text.0, errors).units();
                    amounts.extended.push((other.into(), amount));
                }
                None if other.contains('/') => {
                    errors.not_yet(
                        &path,
                        "devices and other extended resources come with a later release",
                    );
                }
                None => errors.unsupported(&path, other, &KNOWN),
            },
        }
    }
    amounts.hugepages.sort_unstable();
    amounts
}

fn hugepages(
    amounts: &mut ResourceAmounts,
    size: &str,
    amount: &str,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let size = match Quantity::parse(size) {
        Ok(size) if size.units() > 0 => size.units(),
        _ => {
            errors.invalid(
                path,
                size,
                "must end in the size of a page, such as hugepages-2Mi",
            );
            return;
        }
    };
    let bytes = quantity(path, amount, errors).units();
    if !bytes.is_multiple_of(size) {
        errors.invalid(path, amount, "must be a multiple of the page size");
    }
    amounts.hugepages.push((size, bytes));
}

fn compare(path: &Path<'_>, request: &str, limit: &str, overcommits: bool, errors: &mut Errors) {
    let (Ok(requested), Ok(most)) = (Quantity::parse(request), Quantity::parse(limit)) else {
        return;
    };
    if requested != most && !overcommits {
        errors.invalid(
            path,
            request,
            format_args!("must equal the limit of {limit}"),
        );
    } else if requested > most {
        errors.invalid(
            path,
            request,
            format_args!("must not exceed the limit of {limit}"),
        );
    }
}

fn complete(requests: &mut ResourceAmounts, limits: &ResourceAmounts) {
    requests.cpu = requests.cpu.or(limits.cpu);
    requests.memory = requests.memory.or(limits.memory);
    requests.ephemeral_storage = requests.ephemeral_storage.or(limits.ephemeral_storage);
    for (name, amount) in &limits.extended {
        if !requests.extended.iter().any(|(other, _)| other == name) {
            requests.extended.push((name.clone(), *amount));
        }
    }
    requests.extended.sort_unstable();
    for (size, bytes) in &limits.hugepages {
        if !requests.hugepages.iter().any(|(other, _)| other == size) {
            requests.hugepages.push((*size, *bytes));
        }
    }
    requests.hugepages.sort_unstable();
}
