//! Faults that only the model API server can inject; with a real one these tests are skipped.

mod audit;
mod caches;
mod faults;

use rubelet_testbed::api_server;

/// Whether this run uses the model.
fn applies() -> bool {
    let real = api_server::real_programs().unwrap();
    rubelet_needs::applies(
        real.is_none(),
        "only the model API server can inject this fault",
    )
}
