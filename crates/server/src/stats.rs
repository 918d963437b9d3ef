//! Statistics of the node: documents whose numbers are read when they are requested.

mod request;

use rubelet_http_core::{
    query::Query,
    respond::{self, ApiResult},
};

use crate::NodeView;

pub use request::{StatsDocument, StatsRequest};

/// `/stats/summary` on the socket.
pub(crate) async fn summary(view: &dyn NodeView, query: &Query) -> ApiResult {
    let request = StatsRequest {
        document: StatsDocument::summary(query),
        live: true,
    };
    Ok(respond::json_bytes(view.stats(request).await.into()))
}
