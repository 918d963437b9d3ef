//! An API server whose caches lag behind its storage.

use rubelet_testbed::wait;
use serde_json::json;
use sim_api::PodCache;

use crate::joined::{Joined, WAITS, pod, restarts};
use crate::outside::TIMEOUT;

const CACHES: [PodCache; 2] = [PodCache::Authorizer, PodCache::NodeRestriction];

#[test]
fn a_pod_starts_although_the_api_servers_caches_lag() {
    if !super::applies() {
        return;
    }
    let joined = Joined::start_on_model("worker");
    let model = joined.cluster.api().model().unwrap();
    let map = json!({
        "metadata": { "name": "settings", "namespace": "default" },
        "data": { "A": "b" },
    });
    model.create("configmaps", &map).unwrap();
    model.configure(|config| config.scheduler = false);
    let mut web = pod("web", WAITS);
    let main = &mut web["spec"]["containers"][0];
    main["envFrom"] = json!([{ "configMapRef": { "name": "settings" } }]);
    joined.create(&web);
    for cache in CACHES {
        model.hold_pods(cache);
    }
    model.configure(|config| config.scheduler = true);
    // The volume of the token contains a config map, which is read first.
    let resources = ["configmaps", "serviceaccounts/token"];
    for (cache, resource) in CACHES.into_iter().zip(resources) {
        let refused = || model.count(|one| one.code == 403 && one.resource == resource);
        let seen = wait::until("a refusal", TIMEOUT, || Ok((refused() > 0).then_some(())));
        seen.unwrap_or_else(|error| panic!("{resource}: {error}"));
        model.release_pods(cache);
    }
    let seen = joined.wait_ready("web");
    assert_eq!(restarts(&seen), 0);
    assert_eq!(joined.truth.containers().unwrap().len(), 1);
    joined.cluster.no_violations().unwrap();
}
