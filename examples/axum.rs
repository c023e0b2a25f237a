//! A web app that enqueues jobs. What the store refuses becomes the status that HTTP has for it, in
//! one place; a repeated request with the same `Idempotency-Key` enqueues nothing twice.
//!
//! ```sh
//! cargo run --example axum    # Redis by SPRAG_REDIS_URL or REDIS_URL, else on this machine
//! curl -i localhost:3000/signups -H 'Idempotency-Key: 4711' --json '{"email":"ada@example.org"}'
//! curl -i localhost:3000/jobs/email/4711
//! curl -i localhost:3000/ready    # 200 when Redis can be used, else 503: for a load balancer
//! ```
//!
//! `ADDR` says where it listens. With `SPRAG_REDIS_URL=memory://` it needs no Redis; its jobs wait
//! then, for the worker would have to be in this process.

#![allow(clippy::print_stdout, reason = "it tells where it listens")]

use axum::{
    Json, Router,
    extract::{Path, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::{Value, json};
use sprag::{Client, Job, StoreError};
use std::{error::Error, time::Duration};
use tokio::net::TcpListener;

#[derive(serde::Serialize, serde::Deserialize)]
struct SendWelcome {
    email: String,
}

impl Job for SendWelcome {
    const KIND: &'static str = "email:welcome";
    const QUEUE: &'static str = "email";
    // A finished job owns its id while it is kept: for a day, a repeated request is recognised.
    const RETENTION: Option<Duration> = Some(Duration::from_secs(24 * 3600));
}

/// A web request does not wait for a store that is away: 503 is an answer, too.
const PATIENCE: Duration = Duration::from_secs(3);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let app = Router::new()
        .route("/signups", post(sign_up))
        .route("/jobs/{queue}/{id}", get(job))
        .route("/ready", get(ready))
        .with_state(Client::from_env()?);
    let address = std::env::var("ADDR").unwrap_or_else(|_| "127.0.0.1:3000".to_owned());
    let listener = TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, app).with_graceful_shutdown(told_to_stop()).await?;
    Ok(())
}

async fn sign_up(
    State(client): State<Client>,
    headers: HeaderMap,
    Json(job): Json<SendWelcome>,
) -> Result<impl IntoResponse, Refusal> {
    // One address, one mail on its way at a time.
    let unique_key = job.email.clone();
    let mut enqueue = client.enqueue(job).unique_key(unique_key);
    if let Some(key) = headers.get("idempotency-key") {
        enqueue = enqueue.id(String::from_utf8_lossy(key.as_bytes()));
    }
    let enqueued = in_time(enqueue.into_future()).await?;
    let location = format!("/jobs/{}/{}", SendWelcome::QUEUE, enqueued.id);
    let body = json!({ "id": enqueued.id.as_str(), "existing": enqueued.existing });
    Ok((StatusCode::ACCEPTED, [(header::LOCATION, location)], Json(body)))
}

async fn job(
    State(client): State<Client>,
    Path((queue, id)): Path<(String, String)>,
) -> Result<Json<Value>, Refusal> {
    let job = in_time(client.inspector().job(queue, id)).await?;
    let failures: Vec<_> = job.errors.iter().map(|failure| &failure.error).collect();
    Ok(Json(json!({ "state": job.state, "attempt": job.attempt, "failures": failures })))
}

/// It starts without Redis, too, and is ready when Redis is.
async fn ready(State(client): State<Client>) -> Result<&'static str, StatusCode> {
    let ready = in_time(client.ready(Duration::ZERO)).await;
    ready.map(|()| "ready").map_err(|error| {
        tracing::warn!(%error, "not ready");
        StatusCode::SERVICE_UNAVAILABLE
    })
}

async fn in_time<T>(call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    let late = |_| Err(StoreError::Unavailable(format!("no answer within {PATIENCE:?}")));
    tokio::time::timeout(PATIENCE, call).await.unwrap_or_else(late)
}

/// What the store said, as an answer of HTTP.
struct Refusal(StoreError);

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self(error)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        use StoreError::*;
        let status = match &self.0 {
            Invalid(_) => StatusCode::BAD_REQUEST,
            NotFound(_) => StatusCode::NOT_FOUND,
            Duplicate { .. } | IdConflict { .. } | LeaseRejected { .. } => StatusCode::CONFLICT,
            Quarantined { .. } => StatusCode::LOCKED,
            Backpressure { .. } => StatusCode::TOO_MANY_REQUESTS,
            Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
            Backend(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let mut body = json!({ "error": self.0.to_string() });
        if status.is_server_error() {
            // What exactly is for us to know: it may name machines.
            tracing::error!(error = %self.0, "the store failed");
            body["error"] = status.canonical_reason().into();
        }
        if let Duplicate { existing_id, .. } = &self.0 {
            body["existing_id"] = existing_id.as_str().into();
        }
        let again_in = match &self.0 {
            Backpressure { .. } => Some([(header::RETRY_AFTER, "5")]),
            Unavailable(_) => Some([(header::RETRY_AFTER, "10")]),
            _ => None,
        };
        (status, again_in, Json(body)).into_response()
    }
}

/// Resolves at SIGTERM or Ctrl-C: requests under way are still answered.
async fn told_to_stop() {
    #[cfg(unix)]
    let terminated = async {
        use tokio::signal::unix::{SignalKind, signal};
        match signal(SignalKind::terminate()) {
            Ok(mut signals) => drop(signals.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    #[cfg(not(unix))]
    let terminated = std::future::pending();
    tokio::select! {
        () = terminated => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}
