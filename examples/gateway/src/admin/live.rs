//! The page, and the numbers that it shows.

use std::{convert::Infallible, sync::Arc};

use axum::{
    Json, Router,
    extract::State,
    http::{
        StatusCode,
        header::{CACHE_CONTROL, CONTENT_TYPE},
    },
    response::{Html, IntoResponse, Sse, sse::Event},
    routing::get,
};
use futures_util::stream;

use super::{Panel, board};

/// Where in the page the first numbers go, so that it shows them at once.
const PLACE: &str = "{{state}}";

/// The files of the page, by their names.
const FILES: [(&str, &str, &str); 6] = [
    ("/icon.svg", "image/svg+xml", include_str!("page/icon.svg")),
    ("/page.js", JAVASCRIPT, include_str!("page/page.js")),
    ("/page.css", CSS, include_str!("page/page.css")),
    ("/uPlot.iife.min.js", JAVASCRIPT, include_str!("page/uPlot.iife.min.js")),
    ("/uPlot.min.css", CSS, include_str!("page/uPlot.min.css")),
    ("/uPlot.LICENSE", "text/plain; charset=utf-8", include_str!("page/uPlot.LICENSE")),
];
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";

pub(super) fn files() -> Router<Panel> {
    FILES.into_iter().fold(Router::new(), |router, (path, kind, text)| {
        router.route(
            path,
            get(async move || ([(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-cache")], text)),
        )
    })
}

pub(super) async fn page(State(panel): State<Panel>) -> impl IntoResponse {
    // Nothing in it ends the element that it stands in.
    let state = panel.json(0).0.replace('<', "\\u003c");
    Html(include_str!("page/index.html").replace(PLACE, &state))
}

/// The numbers, once.
pub(super) async fn now(State(panel): State<Panel>) -> impl IntoResponse {
    Json(panel.state(0))
}

/// All numbers at first, and then those of each second.
pub(super) async fn events(State(panel): State<Panel>) -> Result<impl IntoResponse, StatusCode> {
    let viewer = Arc::clone(&panel.viewers).try_acquire_owned();
    let viewer = viewer.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    let mut ticks = panel.board.ticks();
    ticks.mark_changed();
    let watching = (panel, ticks, 0, viewer);
    let events = stream::unfold(watching, |(panel, mut ticks, after, viewer)| async move {
        ticks.changed().await.ok()?;
        let (json, last) = panel.json(after);
        let event = Ok::<_, Infallible>(Event::default().data(json));
        Some((event, (panel, ticks, last.unwrap_or(after), viewer)))
    });
    Ok(Sse::new(events))
}

impl Panel {
    fn state(&self, after: u64) -> board::State {
        self.board.state(after, &self.limiter, &self.policies.load())
    }

    /// The numbers after this second, and the last second that they have.
    fn json(&self, after: u64) -> (String, Option<u64>) {
        let state = self.state(after);
        let json = serde_json::to_string(&state).unwrap_or_else(|_| "{}".to_owned());
        (json, state.last())
    }
}
