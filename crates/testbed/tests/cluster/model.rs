//! What only the model API server can be made to do; with a real one these tests are skipped.

mod audit;
mod caches;
mod faults;

use rubelet_testbed::api_server;

/// Whether the model is the judge of this run.
fn applies() -> bool {
    let real = api_server::real_programs().unwrap();
    rubelet_needs::applies(
        real.is_none(),
        "only the model API server can be made to do it",
    )
}
