//! Tests of `attributes`.

use super::*;

#[test]
fn a_log_is_followed_where_the_port_says_so() {
    for (query, long) in [
        ("follow", true),
        ("follow=yes", true),
        ("follow=1&follow=0", true),
        ("follow=0&follow=1", false),
        ("follow=False", false),
        ("tailLines=1", false),
    ] {
        let uri = format!("/containerLogs/a/b/c?{query}").parse().unwrap();
        let found = RequestAttributes::of_node(&Method::GET, "get", "proxy", "n", &uri);
        assert_eq!(found.long_running, long, "{query}");
    }
}
