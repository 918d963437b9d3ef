//! The tests of a node in a cluster: with the model API server, or with real programs.

use anyhow::Result;
use rubelet_testbed::api_server::programs::Programs;

/// The ring of these tests.
pub(super) const RING: u8 = 3;
/// Their test programs.
pub(super) const PROGRAMS: [&str; 1] = ["cluster"];

/// Whether a ring contains them.
pub(super) fn is_ring(ring: u8) -> bool {
    ring == RING
}

/// Reports which API server the nodes of this run joined.
pub(super) fn judge(programs: Option<&Programs>) -> Result<String> {
    Ok(match programs {
        Some(programs) => format!(
            "API server of the cluster tests: {} of {programs}",
            programs.version()?
        ),
        None => "API server of the cluster tests: the model (crates/sim-api); \
                 --api-server DIR runs them against real programs"
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_names_the_api_server() {
        assert!(judge(None).unwrap().contains("the model (crates/sim-api)"));
    }
}
