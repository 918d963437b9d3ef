//! Tests of `route`.

use super::*;

#[test]
fn paths_of_the_api_are_understood() {
    let object = |resource, namespace: &str, name: &str| {
        Route::Object(resource, namespace.to_owned(), name.to_owned())
    };
    for (path, expected) in [
        ("/version", Route::Version),
        ("/metrics", Route::Metrics),
        ("/stats/summary", Route::StatsSummary),
        ("/api", Route::CoreVersions),
        ("/apis/", Route::Groups),
        ("/api/v1", Route::CoreResources),
        ("/api/v1/pods", Route::Collection(Resource::Pods, None)),
        ("/pods/", Route::Collection(Resource::Pods, None)),
        (
            "/api/v1/namespaces/default/events",
            Route::Collection(Resource::Events, Some("default".to_owned())),
        ),
        (
            "/api/v1/namespaces/a/pods/b",
            object(Resource::Pods, "a", "b"),
        ),
        (
            "/api/v1/namespaces/a/pods/b/log",
            Route::Log("a".to_owned(), "b".to_owned()),
        ),
        (
            "/api/v1/namespaces/a/pods/b/files",
            Route::Files(pod("a", "b")),
        ),
        (
            "/api/v1/namespaces/a/pods/b/status",
            Route::Part(pod("a", "b"), Part::Status),
        ),
        (
            "/api/v1/namespaces/a/pods/b/ephemeralcontainers",
            Route::Part(pod("a", "b"), Part::Ephemeral),
        ),
        (
            "/apis/node.rubelet.dev/v1alpha1/namespaces/a/pods/b/restart",
            Route::Restart(pod("a", "b")),
        ),
        (
            "/apis/node.rubelet.dev/v1alpha1/namespaces/a/pods/b/why",
            Route::Why(pod("a", "b")),
        ),
        (
            "/apis/node.rubelet.dev/v1alpha1/namespaces/a/pods/b/net",
            Route::Net(pod("a", "b")),
        ),
        (
            "/apis/node.rubelet.dev/v1alpha1/manifests/a%2Fb.yaml",
            object(Resource::Manifests, "", "a/b.yaml"),
        ),
        (
            "/apis/node.rubelet.dev/v1alpha1/podlifecycleevents",
            Route::Collection(Resource::LifecycleEvents, None),
        ),
        (
            "/apis/node.rubelet.dev/v1alpha1/namespaces/a/podlifecycleevents",
            Route::Collection(Resource::LifecycleEvents, Some("a".to_owned())),
        ),
        (
            "/apis/node.rubelet.dev/v1alpha1/namespaces/a/podlifecycleevents/7",
            object(Resource::LifecycleEvents, "a", "7"),
        ),
        ("/healthz", Route::Health(HealthRoot::Healthz, None)),
        (
            "/healthz/syncloop",
            Route::Health(HealthRoot::Healthz, Some("syncloop".to_owned())),
        ),
    ] {
        assert_eq!(route(path), Ok(expected), "{path}");
    }
}

#[test]
fn other_paths_are_not_found() {
    for path in [
        "/",
        "",
        "/api/v1/nodes",
        "/api/v2",
        "/apis/apps/v1",
        "/healthz/a/b",
        "/api/v1/namespaces/a/events/b/status",
        "/apis/node.rubelet.dev/v1alpha1/namespaces/a/pods/b/x",
        "/apis/node.rubelet.dev/v1alpha1/namespaces/a/podlifecycleevents/7/x",
        "/x",
    ] {
        assert_eq!(
            route(path).map_err(|error| error.code.as_u16()),
            Err(404),
            "{path}"
        );
    }
    assert_eq!(
        route("/api/v1/%zz").map_err(|error| error.code.as_u16()),
        Err(400)
    );
}
