//! Services: each gets a unique cluster IP.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::Context;
use crate::meta;

/// The range of service addresses, 10.96.0.0/16; the first is the API server's.
const FIRST: u32 = u32::from_be_bytes([10, 96, 0, 2]);

pub(super) fn before_create(object: &mut Value, context: &Context<'_>) {
    object["status"] = json!({ "loadBalancer": {} });
    let spec = &mut object["spec"];
    if !spec.is_object() {
        *spec = json!({});
    }
    meta::default(spec, "type", "ClusterIP");
    meta::default(spec, "sessionAffinity", "None");
    for port in spec["ports"].as_array_mut().into_iter().flatten() {
        meta::default(port, "protocol", "TCP");
        let number = port["port"].clone();
        meta::default(port, "targetPort", number);
    }
    if spec["type"] == "ExternalName" {
        return;
    }
    if meta::text(spec, "/clusterIP").is_empty() {
        spec["clusterIP"] = free_address(context).to_string().into();
    }
    spec["clusterIPs"] = json!([spec["clusterIP"]]);
    meta::default(spec, "ipFamilies", json!(["IPv4"]));
    meta::default(spec, "ipFamilyPolicy", "SingleStack");
    meta::default(spec, "internalTrafficPolicy", "Cluster");
}

fn free_address(context: &Context<'_>) -> Ipv4Addr {
    let services = context.store.list("services", None);
    let taken: Vec<&str> = services
        .iter()
        .map(|service| meta::text(service, "/spec/clusterIP"))
        .collect();
    let mut addresses = (FIRST..).map(Ipv4Addr::from);
    let free = addresses.find(|address| !taken.contains(&address.to_string().as_str()));
    free.unwrap_or(Ipv4Addr::UNSPECIFIED)
}
