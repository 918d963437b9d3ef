//! Metrics of images.

use super::*;

#[tokio::test(start_paused = true)]
async fn requests_for_images_and_checks_of_access_are_counted() {
    let test = ImageTest::new(DEFAULT, &[]);
    let count = |line: &str| {
        let text = test.metrics.render();
        let found = text.lines().find_map(|found| found.strip_prefix(line));
        found.map_or(0.0, |value| value.trim().parse::<f64>().unwrap())
    };
    for (image, users, policy) in [
        (PRIVATE, &["alice"][..], "IfNotPresent"),
        (PRIVATE, &["alice"], "Never"),
        (PRIVATE, &["mallory"], "IfNotPresent"),
        (PRIVATE, &["mallory"], "Never"),
        (PUBLIC, &[], "Always"),
        (PUBLIC, &[], "Always"),
        ("registry.example/missing:1", &[], "Never"),
    ] {
        // Some are refused.
        let _ = test.start(image, users, policy).await;
    }
    let requests = [
        ("ifnotpresent", "false", "true", 1.0),
        ("never", "true", "false", 1.0),
        ("ifnotpresent", "true", "true", 1.0),
        ("never", "true", "true", 1.0),
        ("always", "unknown", "true", 2.0),
        ("never", "false", "unknown", 1.0),
    ];
    for (policy, is_present, needs_pull, expected) in requests {
        let line = format!(
            "kubelet_image_manager_ensure_image_requests_total{{\
             present_locally=\"{is_present}\",pull_policy=\"{policy}\",pull_required=\"{needs_pull}\"}}"
        );
        assert_eq!(count(&line), expected, "{line}\n{}", test.metrics.render());
    }
    let checks = "kubelet_imagemanager_image_mustpull_checks_total";
    for (result, expected) in [("credentialRecordFound", 1.0), ("mustAuthenticate", 2.0)] {
        assert_eq!(
            count(&format!("{checks}{{result=\"{result}\"}}")),
            expected,
            "{result}"
        );
    }
    // One of each image; no pull goes on, and the one that failed is over.
    assert_eq!(count("kubelet_imagemanager_ondisk_pulledrecords"), 2.0);
    assert_eq!(count("kubelet_imagemanager_ondisk_pullintents"), 0.0);
    let pulls = "kubelet_image_pull_duration_seconds_count";
    assert_eq!(
        count(&format!("{pulls}{{image_size_in_bytes=\"N/A\"}}")),
        3.0
    );
}
